"""Messages with a descriptor on a Unix socket. The standard library's functions for it take no flags."""

from __future__ import annotations

import socket
import struct
from typing import Final

_NUMBER: Final = struct.Struct("i")


def send(connection: socket.socket, message: bytes, passed: socket.socket, flags: int = 0) -> int:
    """Send a message with a descriptor. Return the number of bytes that were sent."""
    return connection.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, _NUMBER.pack(passed.fileno()))], flags)


def receive(connection: socket.socket, size: int, flags: int = 0) -> tuple[bytes, int | None]:
    """Return up to `size` bytes, and the descriptor that came with them, if any."""
    message, ancillary, _, _ = connection.recvmsg(size, socket.CMSG_SPACE(_NUMBER.size), flags)
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            (number,) = _NUMBER.unpack(data[: _NUMBER.size])
            return message, int(number)
    return message, None
