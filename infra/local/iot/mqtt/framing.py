"""Framing: splits a byte stream into packets."""

from collections.abc import Iterator

from infra.local.iot.mqtt.reason_codes import MalformedPacket, ReasonCode


class Framer:
    """A framer whose buffer is bounded by one packet of the maximum size and one read."""

    __slots__ = ("_buffer", "_max_bytes", "_needed")

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._needed = 2

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the first byte and the body of each complete packet. Exhaust the iterator before feeding more."""
        if self._buffer:
            self._buffer += data
            if len(self._buffer) < self._needed:
                return
            data = bytes(self._buffer)
            self._buffer.clear()
        position, size = 0, len(data)
        while position < size:
            start = position + 2
            length = data[position + 1] if start <= size else None
            if length is not None and length >= 0x80:
                length, start = self._decode_length(data, position)
            end = start + (length or 0)
            if length is None or end > size:
                self._needed = 2 if length is None else end - position
                self._buffer += memoryview(data)[position:]
                return
            header, position = data[position], end
            yield header, data[start:end]

    def _decode_length(self, data: bytes, position: int) -> tuple[int | None, int]:
        """Decode a length of several bytes, None if incomplete, and the position of the body."""
        length = 0
        for index in range(4):
            offset = position + 1 + index
            if offset >= len(data):
                return None, offset
            length |= (data[offset] & 0x7F) << 7 * index
            if length > self._max_bytes:
                raise MalformedPacket(f"a packet of {length} bytes is too large", ReasonCode.PACKET_TOO_LARGE)
            if data[offset] < 0x80:
                if not data[offset]:
                    raise MalformedPacket("a length is not in its shortest form")
                return length, offset + 1
        raise MalformedPacket("a length is too long")
