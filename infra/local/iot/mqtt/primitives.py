"""MQTT's integers, strings and binary data."""

from typing import Final

from infra.local.iot.mqtt.reason_codes import MalformedPacket

_MAX_LENGTH: Final = 65_535


class PacketReader:
    """A reader of one packet's body that never reads past its end."""

    __slots__ = ("_body", "_position")

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._position = 0

    @property
    def remaining(self) -> int:
        """The number of unread bytes."""
        return len(self._body) - self._position

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        start, stop = self._position, self._position + size
        if stop > len(self._body):
            raise MalformedPacket("the packet is truncated")
        self._position = stop
        return self._body[start:stop]

    def rest(self) -> bytes:
        """Return all unread bytes."""
        return self.take(self.remaining)

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
        try:
            text = self.binary().decode("utf-8")
        except UnicodeDecodeError:
            raise MalformedPacket("text is not UTF-8") from None
        if "\0" in text:
            raise MalformedPacket("text holds NUL")
        return text

    def finish(self) -> None:
        """Raise MalformedPacket if bytes are left."""
        if self.remaining:
            raise MalformedPacket("the packet has trailing bytes")


def variable(value: int) -> bytes:
    """Encode a variable-length integer."""
    parts = bytearray()
    while True:
        value, byte = value >> 7, value & 0x7F
        parts.append(byte | 0x80 if value else byte)
        if not value:
            return bytes(parts)


def number(value: int) -> bytes:
    """Encode an integer of two bytes."""
    return value.to_bytes(2, "big")


def binary(value: bytes) -> bytes:
    """Encode length-prefixed binary data."""
    if len(value) > _MAX_LENGTH:
        raise ValueError(f"{len(value)} bytes exceed the maximum of a 2-byte length")
    return number(len(value)) + value


def text(value: str) -> bytes:
    """Encode length-prefixed text."""
    return binary(value.encode("utf-8"))


def packet(header: int, body: bytes) -> bytes:
    """Encode a complete packet."""
    return bytes((header,)) + variable(len(body)) + body
