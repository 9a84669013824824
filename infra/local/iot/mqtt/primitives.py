"""MQTT's integers, strings and binary data."""

from __future__ import annotations

from typing import Final

from infra.local.iot.mqtt.reason_codes import MalformedPacket

_MAX_LENGTH: Final = 65_535


class PacketReader:
    """A reader of one packet's body that never reads past its end."""

    __slots__ = ("_body", "_end", "position")

    def __init__(self, body: bytes, position: int = 0, end: int | None = None) -> None:
        self._body = body
        self._end = len(body) if end is None else end
        self.position = position

    @property
    def remaining(self) -> int:
        """The number of unread bytes."""
        return self._end - self.position

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        start, stop = self.position, self.position + size
        if stop > self._end:
            raise MalformedPacket("the packet is truncated")
        self.position = stop
        return self._body[start:stop]

    def rest(self) -> bytes:
        """Return all unread bytes."""
        return self.take(self._end - self.position)

    def integer(self, size: int) -> int:
        """Read an integer of `size` bytes."""
        return int.from_bytes(self.take(size), "big")

    def variable(self) -> int:
        """Read a variable-length integer in its shortest form."""
        value = 0
        for shift in (0, 7, 14, 21):
            byte = self.integer(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if shift and not byte:
                    raise MalformedPacket("an integer is not in its shortest form")
                return value
        raise MalformedPacket("an integer is too long")

    def binary(self) -> bytes:
        """Read length-prefixed binary data."""
        return self.take(self.integer(2))

    def text(self) -> str:
        """Read length-prefixed text."""
        return text_from(self.binary())

    def part(self, size: int) -> PacketReader:
        """Return a reader limited to the next bytes."""
        start = self.position
        self.position = start + size
        if self.position > self._end:
            raise MalformedPacket("the packet is truncated")
        return PacketReader(self._body, start, self.position)

    def finish(self) -> None:
        """Raise MalformedPacket if bytes are left."""
        if self.position != self._end:
            raise MalformedPacket("the packet has trailing bytes")


def text_from(raw: bytes) -> str:
    """Decode UTF-8 text."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise MalformedPacket("text is not UTF-8") from None
    if "\0" in text:
        raise MalformedPacket("text holds NUL")
    return text


def variable(value: int) -> bytes:
    """Encode a variable-length integer."""
    if value < 0x80:
        return value.to_bytes(1, "big")
    parts = bytearray()
    while True:
        value, byte = value >> 7, value & 0x7F
        parts.append(byte | 0x80 if value else byte)
        if not value:
            return bytes(parts)


def binary(value: bytes) -> bytes:
    """Encode length-prefixed binary data."""
    if len(value) > _MAX_LENGTH:
        raise ValueError(f"{len(value)} bytes exceed the maximum of a 2-byte length")
    return len(value).to_bytes(2, "big") + value


def text(value: str) -> bytes:
    """Encode length-prefixed text."""
    return binary(value.encode("utf-8"))


def packet(header: int, body: bytes) -> bytes:
    """Encode a complete packet."""
    size = len(body)
    if size < 0x80:
        return bytes((header, size)) + body
    return bytes((header,)) + variable(size) + body
