"""The DynamoDB engine's network namespace: nothing outside of it can connect to the engine's port.

`python -I store_namespace.py <parent> <socket> <command> …` runs the command in a network namespace of its own. On the
Unix socket, whose file only its user may open, it hands out connections to the command's port.
"""

import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import Final

PORT: Final = 8000
"""The command's port on 127.0.0.1. No other process uses the namespace."""
FORBIDDEN: Final = 97
"""The exit status if this machine forbids namespaces."""
_CONNECT_SECONDS: Final = 5
_PR_SET_PDEATHSIG: Final = 1
_NEW_USER: Final = 0x10000000
_NEW_NETWORK: Final = 0x40000000
_SET_INTERFACE_FLAGS: Final = 0x8914
_UP: Final = 1


def main(parent: int, socket_file: Path, command: list[str]) -> None:
    """Enter a namespace, then run the command in this process and hand out connections in a child process."""
    try:
        _enter_namespace()
    except OSError as error:
        print(f"network namespaces are forbidden: {error}", file=sys.stderr)
        sys.exit(FORBIDDEN)
    _end_with(parent)
    listener = _listen(socket_file)
    this = os.getpid()
    if os.fork():
        os.execv(command[0], command)  # noqa: S606 - no outside input in the command
    _end_with(this)
    _hand_out_connections(listener)


def _enter_namespace() -> None:
    """Create a network namespace with a loopback interface, in a user namespace of its own if that is required."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_NETWORK) and libc.unshare(_NEW_USER | _NEW_NETWORK):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, _SET_INTERFACE_FLAGS, struct.pack("16sh22x", b"lo", _UP))


def _end_with(parent: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)


def _listen(file: Path) -> socket.socket:
    file.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    os.umask(0o177)
    folder = os.open(file.parent, os.O_PATH | os.O_DIRECTORY)
    listener.bind(f"/proc/self/fd/{folder}/{file.name}")  # the whole path may be too long for an address
    os.umask(0o077)
    listener.listen(1024)
    return listener


def _hand_out_connections(listener: socket.socket) -> None:
    while True:
        client, _ = listener.accept()
        with client:
            try:
                with socket.create_connection(("127.0.0.1", PORT), _CONNECT_SECONDS) as connection:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    socket.send_fds(client, [b"\0"], [connection.fileno()])
            except OSError:
                continue  # the client sees the end of the connection


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
