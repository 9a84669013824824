"""Framing: splits a byte stream into packets."""

from collections.abc import Iterator

from infra.local.iot.mqtt.reason_codes import MalformedPacket, ReasonCode


class Framer:
    """A framer whose buffer is bounded by one packet of the maximum size and one read."""

    __slots__ = ("_buffer", "_max_bytes")

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the first byte and the body of each complete packet. Exhaust the iterator before feeding more."""
        buffer, position = self._buffer, 0
        buffer += data
        while body := self._body(position):
            header, position = buffer[position], body.stop
            yield header, bytes(buffer[body])
        del buffer[:position]

    def _body(self, position: int) -> slice | None:
        """Return the place of the body of the packet that begins here, None if the packet is incomplete."""
        length = 0
        for index, byte in enumerate(self._buffer[position + 1 : position + 5]):
            length |= (byte & 0x7F) << 7 * index
            if length > self._max_bytes:
                raise MalformedPacket(f"a packet of {length} bytes is too large", ReasonCode.PACKET_TOO_LARGE)
            if byte < 0x80:
                if index and not byte:
                    raise MalformedPacket("a length is not in its shortest form")
                start = position + 2 + index
                return slice(start, start + length) if start + length <= len(self._buffer) else None
            if index == 3:
                raise MalformedPacket("a length is too long")
        return None
