"""MQTT 5 properties."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from infra.local.mqtt.packets import Kind
from infra.local.mqtt.primitives import binary, text, variable
from infra.local.mqtt.reason_codes import MalformedPacket, ReasonCode

if TYPE_CHECKING:
    from infra.local.mqtt.primitives import PacketReader


@dataclass(slots=True)
class Properties:
    """The properties of one packet; absent ones are None."""

    payload_format: bool | None = None
    message_expiry: int | None = None
    content_type: str | None = None
    response_topic: str | None = None
    correlation_data: bytes | None = None
    subscription_identifier: int | None = None
    session_expiry: int | None = None
    assigned_client_id: str | None = None
    server_keepalive: int | None = None
    authentication_method: str | None = None
    authentication_data: bytes | None = None
    request_problem_information: bool | None = None
    will_delay: int | None = None
    request_response_information: bool | None = None
    response_information: str | None = None
    server_reference: str | None = None
    reason_string: str | None = None
    receive_maximum: int | None = None
    topic_alias_maximum: int | None = None
    topic_alias: int | None = None
    maximum_qos: bool | None = None
    retain_available: bool | None = None
    user_properties: list[tuple[str, str]] = field(default_factory=list)
    maximum_packet_size: int | None = None
    wildcard_available: bool | None = None
    identifier_available: bool | None = None
    shared_available: bool | None = None


class _Form(Enum):
    FLAG = 1
    TWO = 2
    FOUR = 4
    VARIABLE = 5
    TEXT = 6
    BINARY = 7
    PAIR = 8


@dataclass(frozen=True, slots=True)
class _Definition:
    identifier: int
    name: str
    form: _Form
    kinds: frozenset[Kind]
    positive: bool = False


def _define(identifier: int, name: str, form: _Form, *kinds: Kind, positive: bool = False) -> _Definition:
    return _Definition(identifier, name, form, frozenset(kinds), positive)


_MESSAGE: Final = (Kind.PUBLISH, Kind.WILL)
_ANSWERS: Final = (Kind.CONNACK, Kind.PUBACK, Kind.SUBACK, Kind.UNSUBACK, Kind.DISCONNECT)
_ANY: Final = (*_MESSAGE, *_ANSWERS, Kind.CONNECT, Kind.SUBSCRIBE, Kind.UNSUBSCRIBE)
_BOTH: Final = (Kind.CONNECT, Kind.CONNACK)
_DEFINITIONS: Final = (
    _define(0x01, "payload_format", _Form.FLAG, *_MESSAGE),
    _define(0x02, "message_expiry", _Form.FOUR, *_MESSAGE),
    _define(0x03, "content_type", _Form.TEXT, *_MESSAGE),
    _define(0x08, "response_topic", _Form.TEXT, *_MESSAGE),
    _define(0x09, "correlation_data", _Form.BINARY, *_MESSAGE),
    _define(0x0B, "subscription_identifier", _Form.VARIABLE, Kind.PUBLISH, Kind.SUBSCRIBE, positive=True),
    _define(0x11, "session_expiry", _Form.FOUR, *_BOTH, Kind.DISCONNECT),
    _define(0x12, "assigned_client_id", _Form.TEXT, Kind.CONNACK),
    _define(0x13, "server_keepalive", _Form.TWO, Kind.CONNACK),
    _define(0x15, "authentication_method", _Form.TEXT, *_BOTH),
    _define(0x16, "authentication_data", _Form.BINARY, *_BOTH),
    _define(0x17, "request_problem_information", _Form.FLAG, Kind.CONNECT),
    _define(0x18, "will_delay", _Form.FOUR, Kind.WILL),
    _define(0x19, "request_response_information", _Form.FLAG, Kind.CONNECT),
    _define(0x1A, "response_information", _Form.TEXT, Kind.CONNACK),
    _define(0x1C, "server_reference", _Form.TEXT, Kind.CONNACK, Kind.DISCONNECT),
    _define(0x1F, "reason_string", _Form.TEXT, *_ANSWERS),
    _define(0x21, "receive_maximum", _Form.TWO, *_BOTH, positive=True),
    _define(0x22, "topic_alias_maximum", _Form.TWO, *_BOTH),
    _define(0x23, "topic_alias", _Form.TWO, Kind.PUBLISH),
    _define(0x24, "maximum_qos", _Form.FLAG, Kind.CONNACK),
    _define(0x25, "retain_available", _Form.FLAG, Kind.CONNACK),
    _define(0x26, "user_properties", _Form.PAIR, *_ANY),
    _define(0x27, "maximum_packet_size", _Form.FOUR, *_BOTH, positive=True),
    _define(0x28, "wildcard_available", _Form.FLAG, Kind.CONNACK),
    _define(0x29, "identifier_available", _Form.FLAG, Kind.CONNACK),
    _define(0x2A, "shared_available", _Form.FLAG, Kind.CONNACK),
)
_BY_IDENTIFIER: Final = {definition.identifier: definition for definition in _DEFINITIONS}
assert {definition.name for definition in _DEFINITIONS} == {each.name for each in fields(Properties)}


def decode(reader: PacketReader, kind: Kind) -> Properties | None:
    """Decode the properties of a packet of this type. Return None if there are none."""
    size = reader.variable()
    if not size:
        return None
    part = reader.part(size)
    properties = Properties()
    while part.remaining:
        definition = _BY_IDENTIFIER.get(part.variable())
        if definition is None:
            raise MalformedPacket("a property is unknown")
        if kind not in definition.kinds:
            raise MalformedPacket(f"{definition.name} is not allowed in {kind.name}", ReasonCode.PROTOCOL_ERROR)
        value = _decode_value(part, definition.form)
        if definition.form is _Form.PAIR:
            properties.user_properties.append(value)
            continue
        if getattr(properties, definition.name) is not None:
            raise MalformedPacket(f"{definition.name} is repeated", ReasonCode.PROTOCOL_ERROR)
        if definition.positive and not value:
            raise MalformedPacket(f"{definition.name} is 0", ReasonCode.PROTOCOL_ERROR)
        setattr(properties, definition.name, value)
    return properties


def encode(properties: Properties | None) -> bytes:
    """Encode properties with their length."""
    if properties is None:
        return b"\0"
    parts = bytearray()
    for definition in _DEFINITIONS:
        value = getattr(properties, definition.name)
        if definition.form is _Form.PAIR:
            for name, pair_value in value:
                parts.append(definition.identifier)
                parts += text(name) + text(pair_value)
        elif value is not None:
            parts.append(definition.identifier)
            parts += _encode_value(value, definition.form)
    return variable(len(parts)) + parts


def _decode_value(reader: PacketReader, form: _Form) -> Any:
    match form:
        case _Form.FLAG:
            value = reader.integer(1)
            if value > 1:
                raise MalformedPacket("a flag is neither 0 nor 1", ReasonCode.PROTOCOL_ERROR)
            return bool(value)
        case _Form.TWO | _Form.FOUR:
            return reader.integer(form.value)
        case _Form.VARIABLE:
            return reader.variable()
        case _Form.TEXT:
            return reader.text()
        case _Form.BINARY:
            return reader.binary()
        case _Form.PAIR:
            return reader.text(), reader.text()


def _encode_value(value: Any, form: _Form) -> bytes:
    match form:
        case _Form.FLAG:
            return bytes((value,))
        case _Form.TWO | _Form.FOUR:
            return int.to_bytes(value, form.value, "big")
        case _Form.VARIABLE:
            return variable(value)
        case _Form.TEXT:
            return text(value)
        case _:
            return binary(value)
