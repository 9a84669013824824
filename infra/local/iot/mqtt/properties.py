"""MQTT 5 properties."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, NamedTuple, get_type_hints

from infra.local.iot.mqtt.packets import Kind
from infra.local.iot.mqtt.primitives import PacketReader, binary, text, variable
from infra.local.iot.mqtt.reason_codes import MalformedPacket, ReasonCode


class _Form(NamedTuple):
    """The encoding of a value."""

    decode: Callable[[PacketReader], Any]
    encode: Callable[[Any], bytes]


def _decode_flag(reader: PacketReader) -> bool:
    value = reader.integer(1)
    if value > 1:
        raise MalformedPacket("a flag is neither 0 nor 1", ReasonCode.PROTOCOL_ERROR)
    return bool(value)


_FLAG: Final = _Form(_decode_flag, lambda value: bytes((value,)))
_TWO: Final = _Form(lambda reader: reader.integer(2), lambda value: int.to_bytes(value, 2, "big"))
_FOUR: Final = _Form(lambda reader: reader.integer(4), lambda value: int.to_bytes(value, 4, "big"))
_VARIABLE: Final = _Form(PacketReader.variable, variable)
_TEXT: Final = _Form(PacketReader.text, text)
_BINARY: Final = _Form(PacketReader.binary, binary)
_PAIR: Final = _Form(lambda reader: (reader.text(), reader.text()), lambda pair: text(pair[0]) + text(pair[1]))

_MESSAGE: Final = (Kind.PUBLISH, Kind.WILL)
_ANSWERS: Final = (Kind.CONNACK, Kind.PUBACK, Kind.SUBACK, Kind.UNSUBACK, Kind.DISCONNECT)
_ANY: Final = (*_MESSAGE, *_ANSWERS, Kind.CONNECT, Kind.SUBSCRIBE, Kind.UNSUBSCRIBE)
_BOTH: Final = (Kind.CONNECT, Kind.CONNACK)


@dataclass(frozen=True, slots=True)
class _Wire:
    """A property on the wire: its identifier, its form, and the packets that may have it."""

    identifier: int
    form: _Form
    kinds: tuple[Kind, ...]
    positive: bool = False


@dataclass(slots=True)
class Properties:
    """The properties of one packet; absent ones are None."""

    payload_format: Annotated[bool | None, _Wire(0x01, _FLAG, _MESSAGE)] = None
    message_expiry: Annotated[int | None, _Wire(0x02, _FOUR, _MESSAGE)] = None
    content_type: Annotated[str | None, _Wire(0x03, _TEXT, _MESSAGE)] = None
    response_topic: Annotated[str | None, _Wire(0x08, _TEXT, _MESSAGE)] = None
    correlation_data: Annotated[bytes | None, _Wire(0x09, _BINARY, _MESSAGE)] = None
    subscription_identifier: Annotated[int | None, _Wire(0x0B, _VARIABLE, (Kind.SUBSCRIBE,), positive=True)] = None
    session_expiry: Annotated[int | None, _Wire(0x11, _FOUR, (*_BOTH, Kind.DISCONNECT))] = None
    assigned_client_id: Annotated[str | None, _Wire(0x12, _TEXT, (Kind.CONNACK,))] = None
    server_keepalive: Annotated[int | None, _Wire(0x13, _TWO, (Kind.CONNACK,))] = None
    authentication_method: Annotated[str | None, _Wire(0x15, _TEXT, _BOTH)] = None
    authentication_data: Annotated[bytes | None, _Wire(0x16, _BINARY, _BOTH)] = None
    request_problem_information: Annotated[bool | None, _Wire(0x17, _FLAG, (Kind.CONNECT,))] = None
    will_delay: Annotated[int | None, _Wire(0x18, _FOUR, (Kind.WILL,))] = None
    request_response_information: Annotated[bool | None, _Wire(0x19, _FLAG, (Kind.CONNECT,))] = None
    reason_string: Annotated[str | None, _Wire(0x1F, _TEXT, _ANSWERS)] = None
    receive_maximum: Annotated[int | None, _Wire(0x21, _TWO, _BOTH, positive=True)] = None
    topic_alias_maximum: Annotated[int | None, _Wire(0x22, _TWO, _BOTH)] = None
    topic_alias: Annotated[int | None, _Wire(0x23, _TWO, (Kind.PUBLISH,))] = None
    maximum_qos: Annotated[bool | None, _Wire(0x24, _FLAG, (Kind.CONNACK,))] = None
    retain_available: Annotated[bool | None, _Wire(0x25, _FLAG, (Kind.CONNACK,))] = None
    user_properties: Annotated[list[tuple[str, str]], _Wire(0x26, _PAIR, _ANY)] = field(default_factory=list)
    maximum_packet_size: Annotated[int | None, _Wire(0x27, _FOUR, _BOTH, positive=True)] = None
    wildcard_available: Annotated[bool | None, _Wire(0x28, _FLAG, (Kind.CONNACK,))] = None
    identifier_available: Annotated[bool | None, _Wire(0x29, _FLAG, (Kind.CONNACK,))] = None
    shared_available: Annotated[bool | None, _Wire(0x2A, _FLAG, (Kind.CONNACK,))] = None


_WIRE: Final[dict[str, _Wire]] = {
    name: hint.__metadata__[0] for name, hint in get_type_hints(Properties, include_extras=True).items()
}
_BY_IDENTIFIER: Final = {wire.identifier: (name, wire) for name, wire in _WIRE.items()}


def decode(reader: PacketReader, kind: Kind) -> Properties | None:
    """Decode the properties of a packet of this type. Return None if there are none."""
    size = reader.variable()
    if not size:
        return None
    part = PacketReader(reader.take(size))
    properties = Properties()
    while part.remaining:
        name, wire = _BY_IDENTIFIER.get(part.variable(), ("", None))
        if wire is None:
            raise MalformedPacket("a property is unknown")
        if kind not in wire.kinds:
            raise MalformedPacket(f"{name} is not allowed in {kind.name}", ReasonCode.PROTOCOL_ERROR)
        value = wire.form.decode(part)
        if wire.form is _PAIR:
            properties.user_properties.append(value)
            continue
        if getattr(properties, name) is not None:
            raise MalformedPacket(f"{name} is repeated", ReasonCode.PROTOCOL_ERROR)
        if wire.positive and not value:
            raise MalformedPacket(f"{name} is 0", ReasonCode.PROTOCOL_ERROR)
        setattr(properties, name, value)
    return properties


def encode(properties: Properties | None) -> bytes:
    """Encode properties with their length."""
    if properties is None:
        return b"\0"
    parts = bytearray()
    for name, wire in _WIRE.items():
        value = getattr(properties, name)
        for each in value if wire.form is _PAIR else () if value is None else (value,):
            parts.append(wire.identifier)
            parts += wire.form.encode(each)
    return variable(len(parts)) + parts
