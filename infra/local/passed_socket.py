"""Connections of a server in another network namespace, passed over a Unix socket."""

import os
import socket
from typing import Final

SCHEME: Final = "unix"


def connect(file: str, seconds: float) -> socket.socket:
    """Return a connection to the server behind the Unix socket `file`. Raise OSError if there is none."""
    folder, name = os.path.split(file)
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX) as channel:
            channel.settimeout(seconds)
            channel.connect(f"/proc/self/fd/{descriptor}/{name}")  # the whole path may be too long for an address
            _, passed, _, _ = socket.recv_fds(channel, 1, 1)
    finally:
        os.close(descriptor)
    if not passed:
        raise ConnectionRefusedError
    connection = socket.socket(fileno=passed[0])
    connection.settimeout(seconds)
    return connection
