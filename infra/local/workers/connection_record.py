"""A worker's progress on each of its connections, in memory that outlives it.

The owner of the workers reads a record when the worker has died, and knows what to answer.
"""

from __future__ import annotations

import array
import fcntl
import mmap
import os
import socket
import struct
import termios
from enum import Enum
from typing import Final, NamedTuple

SLOTS: Final = 8192
"""The most connections of a worker."""
_SIZE: Final = 4096
_NEW, _READING, _BEGUN, _ANSWERED, _REFUSED = range(5)
_DOUBTFUL_AT: Final = 1
_LENGTH_AT: Final = 2
_BEFORE_AT: Final = 8
_WRITTEN_AT: Final = 16
_READ_AT: Final = 24
_NOTE_AT: Final = 32
_LENGTH: Final = struct.Struct("<H")
_BYTES: Final = struct.Struct("<Q")
_MAX_NOTE: Final = _SIZE - _NOTE_AT
_COUNTS: Final = struct.Struct("<QQ")
_COUNTS_AT: Final = 120
"""The offset of tcpi_bytes_acked and tcpi_bytes_received in Linux' TCP_INFO."""
_TCP_INFO_BYTES: Final = 256


class Progress(Enum):
    """The progress of a connection whose worker has died."""

    BETWEEN_REQUESTS = "between requests"
    NOT_BEGUN = "not begun"
    BEGUN = "begun"
    UNKNOWN = "unknown"
    """A part of a response was sent, or no other request can follow."""


class Traffic(NamedTuple):
    """The bytes of a connection that its process has given to the system and taken from it."""

    sent: int = 0
    taken: int = 0

    @classmethod
    def of(cls, connection: socket.socket) -> Traffic:
        """Return the bytes so far. No process may use the connection meanwhile; the other end may."""
        acknowledged, received = _counts(connection)
        while True:
            unacknowledged, unread = (_waiting(connection, kind) for kind in (termios.TIOCOUTQ, termios.FIONREAD))
            before, (acknowledged, received) = (acknowledged, received), _counts(connection)
            if before == (acknowledged, received):
                return cls(acknowledged + unacknowledged, received - unread)

    def since(self, earlier: Traffic) -> Traffic:
        """Return the bytes after an earlier count."""
        return Traffic(self.sent - earlier.sent, self.taken - earlier.taken)


def _counts(connection: socket.socket) -> tuple[int, int]:
    acknowledged, received = _COUNTS.unpack_from(
        connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES), _COUNTS_AT
    )
    return acknowledged, received


def _waiting(connection: socket.socket, kind: int) -> int:
    count = array.array("i", [0])
    fcntl.ioctl(connection, kind, count)
    return count[0]


class ConnectionRecords:
    """The records of one worker, which both processes map."""

    def __init__(self, descriptor: int | None = None) -> None:
        self.descriptor = os.memfd_create("connections") if descriptor is None else descriptor
        os.ftruncate(self.descriptor, SLOTS * _SIZE)
        self._memory = mmap.mmap(self.descriptor, SLOTS * _SIZE)

    def close(self) -> None:
        """Release the memory."""
        self._memory.close()
        os.close(self.descriptor)

    def open(self, slot: int) -> ConnectionRecord:
        """Return the record of a new connection, for its worker."""
        return ConnectionRecord(self._memory, slot * _SIZE)

    def clear(self, slot: int) -> None:
        """Begin the record of a new connection."""
        self._memory[slot * _SIZE : slot * _SIZE + _NOTE_AT] = bytes(_NOTE_AT)

    def progress(self, slot: int, traffic: Traffic) -> Progress:
        """Return the progress of a dead worker that has caused this traffic."""
        start, sent = slot * _SIZE, traffic.sent
        state, is_doubtful = self._memory[start], self._memory[start + _DOUBTFUL_AT]
        (before,) = _BYTES.unpack_from(self._memory, start + _BEFORE_AT)
        written, read = _COUNTS.unpack_from(self._memory, start + _WRITTEN_AT)
        if sent == before and (state == _BEGUN or (state == _ANSWERED and written > sent)):
            return Progress.BEGUN
        if is_doubtful:
            return Progress.UNKNOWN
        if sent == before and (state == _READING or (state == _REFUSED and written > sent)):
            return Progress.NOT_BEGUN
        if state in (_READING, _BEGUN) or sent != written:
            return Progress.UNKNOWN
        # The worker may have taken bytes of the next request, and died before it could record that.
        return Progress.BETWEEN_REQUESTS if traffic.taken == read else Progress.NOT_BEGUN

    def request(self, slot: int) -> bytes | None:
        """Return what the worker has noted of the request under way, None between requests."""
        start = slot * _SIZE
        if self._memory[start] in (_NEW, _ANSWERED, _REFUSED):
            return None
        return self.note(slot)

    def note(self, slot: int) -> bytes:
        """Return what the worker has noted of the last request."""
        start = slot * _SIZE
        (length,) = _LENGTH.unpack_from(self._memory, start + _LENGTH_AT)
        return self._memory[start + _NOTE_AT : start + _NOTE_AT + length]


class ConnectionRecord:
    """The worker's side of one record. Each step is written before what it announces is done."""

    def __init__(self, memory: mmap.mmap, start: int) -> None:
        self._memory = memory
        self._start = start
        self._state = _NEW
        self._written = 0
        self._read = 0

    def read(self, count: int) -> None:
        """Record that `count` bytes of a request were read."""
        self._read += count
        if self._state == _BEGUN:
            self._memory[self._start + _DOUBTFUL_AT] = 1  # the next request's, which no other worker can read
        elif self._state != _READING:
            self._memory[self._start + _LENGTH_AT : self._start + _BEFORE_AT] = bytes(_BEFORE_AT - _LENGTH_AT)
            self._set_state(_READING)
        _BYTES.pack_into(self._memory, self._start + _READ_AT, self._read)

    def note(self, head: bytes, body: bytes) -> None:
        """Note the request for an answer in the worker's place: without a body that is too long, or not at all."""
        if len(head) > _MAX_NOTE:
            return
        note = head + body if len(head) + len(body) <= _MAX_NOTE else head
        at = self._start + _NOTE_AT
        self._memory[at : at + len(note)] = note
        _LENGTH.pack_into(self._memory, self._start + _LENGTH_AT, len(note))

    def begin(self) -> None:
        """Record that the call begins."""
        self._set_state(_BEGUN)

    def write(self, count: int) -> None:
        """Record that `count` bytes of a response are written."""
        self._written += count
        _BYTES.pack_into(self._memory, self._start + _WRITTEN_AT, self._written)

    def answer(self) -> None:
        """Record that the response is complete."""
        self._state = _ANSWERED if self._state == _BEGUN else _REFUSED
        self._memory[self._start] = self._state

    def close(self) -> None:
        """Record that no other request follows."""
        self._memory[self._start + _DOUBTFUL_AT] = 1

    def _set_state(self, state: int) -> None:
        _BYTES.pack_into(self._memory, self._start + _BEFORE_AT, self._written)
        self._state = state
        self._memory[self._start] = state
