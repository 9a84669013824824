"""Integers, strings and binary data as MQTT writes them."""

from __future__ import annotations

from typing import Final

from infra.local.mqtt.reason_codes import MalformedPacket

MAX_VARIABLE: Final = 268_435_455
_MAX_LENGTH: Final = 65_535


class PacketReader:
    """Reads one packet's body from front to back, and never past its end."""

    __slots__ = ("_body", "_end", "position")

    def __init__(self, body: bytes, position: int = 0, end: int | None = None) -> None:
        self._body = body
        self._end = len(body) if end is None else end
        self.position = position

    @property
    def remaining(self) -> int:
        """How many bytes are left."""
        return self._end - self.position

    def take(self, size: int) -> bytes:
        """The next bytes."""
        start, stop = self.position, self.position + size
        if stop > self._end:
            raise MalformedPacket("ends too early")
        self.position = stop
        return self._body[start:stop]

    def rest(self) -> bytes:
        """All bytes that are left."""
        return self.take(self._end - self.position)

    def integer(self, size: int) -> int:
        """An integer of so many bytes."""
        return int.from_bytes(self.take(size), "big")

    def variable(self) -> int:
        """An integer of variable length, in its shortest form."""
        value = 0
        for shift in (0, 7, 14, 21):
            byte = self.integer(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if shift and not byte:
                    raise MalformedPacket("an integer is longer than it need be")
                return value
        raise MalformedPacket("an integer is too long")

    def binary(self) -> bytes:
        """Binary data behind its length."""
        return self.take(self.integer(2))

    def text(self) -> str:
        """Text behind its length."""
        return text_from(self.binary())

    def part(self, size: int) -> PacketReader:
        """A reader of the next bytes alone."""
        start = self.position
        self.position = start + size
        if self.position > self._end:
            raise MalformedPacket("ends too early")
        return PacketReader(self._body, start, self.position)

    def finish(self) -> None:
        """Refuse whatever is left."""
        if self.position != self._end:
            raise MalformedPacket("goes on after its end")


def text_from(raw: bytes) -> str:
    """Text from its UTF-8."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise MalformedPacket("text is not UTF-8") from None
    if "\0" in text:
        raise MalformedPacket("text holds NUL")
    return text


def variable(value: int) -> bytes:
    """An integer of variable length."""
    if value < 0x80:
        return value.to_bytes(1, "big")
    parts = bytearray()
    while True:
        value, byte = value >> 7, value & 0x7F
        parts.append(byte | 0x80 if value else byte)
        if not value:
            return bytes(parts)


def binary(value: bytes) -> bytes:
    """Binary data behind its length."""
    if len(value) > _MAX_LENGTH:
        raise ValueError(f"{len(value)} bytes do not fit behind a length of two")
    return len(value).to_bytes(2, "big") + value


def text(value: str) -> bytes:
    """Text behind its length."""
    return binary(value.encode("utf-8"))


def packet(header: int, body: bytes) -> bytes:
    """A whole packet."""
    size = len(body)
    if size < 0x80:
        return bytes((header, size)) + body
    return bytes((header,)) + variable(size) + body
