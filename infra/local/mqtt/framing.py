"""Cutting a stream of bytes into packets, whatever pieces it arrives in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.local.mqtt.reason_codes import MalformedPacket, ReasonCode

if TYPE_CHECKING:
    from collections.abc import Iterator


class Framer:
    """Keeps what is not yet a whole packet, and never more than one packet of the largest size and one read."""

    __slots__ = ("_kept", "_largest", "_needed")

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._kept = bytearray()
        self._needed = 2

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """The first byte and the body of each packet that is now whole; where it is not used up, feed nothing more."""
        if self._kept:
            self._kept += data
            if len(self._kept) < self._needed:
                return
            data = bytes(self._kept)
            self._kept.clear()
        position, size = 0, len(data)
        while position < size:
            start = position + 2
            length = data[position + 1] if start <= size else None
            if length is not None and length >= 0x80:
                length, start = self._long(data, position)
            stop = start + (length or 0)
            if length is None or stop > size:
                self._needed = 2 if length is None else stop - position
                self._kept += memoryview(data)[position:]
                return
            header, position = data[position], stop
            yield header, data[start:stop]

    def _long(self, data: bytes, position: int) -> tuple[int | None, int]:
        """A length of more than one byte, None where it is not whole; and where the body begins."""
        length = 0
        for index in range(4):
            place = position + 1 + index
            if place >= len(data):
                return None, place
            length |= (data[place] & 0x7F) << 7 * index
            if length > self._largest:
                raise MalformedPacket(f"a packet of {length} bytes is too large", ReasonCode.PACKET_TOO_LARGE)
            if data[place] < 0x80:
                if not data[place]:
                    raise MalformedPacket("a length is longer than it need be")
                return length, place + 1
        raise MalformedPacket("a length is too long")
