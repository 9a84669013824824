"""Frames of a worker's calls to the owner, on a Unix socket."""

from __future__ import annotations

import struct
import threading
from typing import TYPE_CHECKING, Final, NamedTuple

from infra.local.workers import descriptors

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

_HEADER: Final = struct.Struct("<QBI")

CALL, RESULT, CRASHED, INDEX, REFUSED = range(5)


class Frame(NamedTuple):
    """A message with the number of its call, and a descriptor if one was passed."""

    number: int
    kind: int
    payload: bytes
    descriptor: int | None


class FrameChannel:
    """One end of the socket. Any thread may send."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = threading.Lock()

    def send(self, number: int, kind: int, payload: bytes = b"", passed: socket.socket | None = None) -> None:
        """Send one frame. Raise OSError if the other end has ended."""
        frame = _HEADER.pack(number, kind, len(payload)) + payload
        with self._sending:
            if passed:
                frame = frame[descriptors.send(self._connection, frame, passed) :]
            self._connection.sendall(frame)

    def frames(self) -> Iterator[Frame]:
        """Yield frames until the other end has ended."""
        while True:
            try:
                header, descriptor = descriptors.receive(self._connection, _HEADER.size)
                header += self._read(_HEADER.size - len(header)) if header else b""
                if len(header) < _HEADER.size:
                    return
                number, kind, length = _HEADER.unpack(header)
                payload = self._read(length)
            except OSError:
                return
            if len(payload) < length:
                return
            yield Frame(number, kind, payload, descriptor)

    def close(self) -> None:
        """End the channel."""
        self._connection.close()

    def _read(self, count: int) -> bytes:
        """Return `count` bytes, fewer at the end."""
        parts = bytearray()
        while len(parts) < count and (part := self._connection.recv(min(count - len(parts), 1 << 20))):
            parts += part
        return bytes(parts)
