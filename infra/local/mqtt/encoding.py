"""Packets to bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from infra.local.mqtt import properties as props
from infra.local.mqtt.packets import (
    MQTT_3,
    MQTT_5,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Pingresp,
    Puback,
    Publish,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
)
from infra.local.mqtt.primitives import binary, packet, text
from infra.local.mqtt.properties import Kind

if TYPE_CHECKING:
    from infra.local.mqtt.packets import Request
    from infra.local.mqtt.properties import Properties


def encode(value: Packet, level: int) -> bytes:  # noqa: C901 - one case a packet
    """The packet's bytes."""
    match value:
        case Publish():
            return publish(value, level)
        case Puback():
            said = _reason(value.reason, value.properties, level)
            return packet(Kind.PUBACK << 4, _number(value.packet_id) + said)
        case Connect():
            return _connect(value)
        case Connack():
            body = bytes((value.session_present, value.reason)) + _properties(value.properties, level)
            return packet(Kind.CONNACK << 4, body)
        case Subscribe():
            requests = b"".join(text(each.topic_filter) + _options(each) for each in value.requests)
            body = _number(value.packet_id) + _properties(value.properties, level) + requests
            return packet(Kind.SUBSCRIBE << 4 | 2, body)
        case Suback() | Unsuback():
            body = _number(value.packet_id) + _properties(value.properties, level) + bytes(value.reasons)
            return packet((Kind.SUBACK if isinstance(value, Suback) else Kind.UNSUBACK) << 4, body)
        case Unsubscribe():
            filters = b"".join(map(text, value.topic_filters))
            body = _number(value.packet_id) + _properties(value.properties, level) + filters
            return packet(Kind.UNSUBSCRIBE << 4 | 2, body)
        case Disconnect():
            return packet(Kind.DISCONNECT << 4, _reason(value.reason, value.properties, level))
        case Pingreq():
            return PINGREQ
        case Pingresp():
            return PINGRESP
    assert_never(value)


def publish(message: Publish, level: int) -> bytes:
    """A message's bytes."""
    flags = message.duplicate << 3 | message.qos << 1 | message.retain
    parts = [text(message.topic)]
    if message.qos:
        parts.append(_number(message.packet_id))
    if level == MQTT_5:
        parts.append(props.encode(message.properties))
    parts.append(message.payload)
    return packet(Kind.PUBLISH << 4 | flags, b"".join(parts))


PINGREQ = packet(Kind.PINGREQ << 4, b"")
PINGRESP = packet(Kind.PINGRESP << 4, b"")


def _connect(value: Connect) -> bytes:
    will, level = value.will, value.level
    flags = value.clean << 1 | (value.password is not None) << 6 | (value.user_name is not None) << 7
    if will:
        flags |= 0x04 | will.qos << 3 | will.retain << 5
    parts = [text("MQTT"), bytes((level, flags)), _number(value.keepalive), _properties(value.properties, level)]
    parts.append(text(value.client_id))
    if will:
        parts += (_properties(will.properties, level), text(will.topic), binary(will.payload))
    if value.user_name is not None:
        parts.append(text(value.user_name))
    if value.password is not None:
        parts.append(binary(value.password))
    return packet(Kind.CONNECT << 4, b"".join(parts))


def _options(request: Request) -> bytes:
    own, published = request.no_local << 2, request.retain_as_published << 3
    return bytes((request.qos | own | published | request.retain_handling << 4,))


def _reason(reason: int, properties: Properties | None, level: int) -> bytes:
    if level == MQTT_3 or (not reason and properties is None):
        return b""
    return bytes((reason,)) + (props.encode(properties) if properties else b"")


def _properties(properties: Properties | None, level: int) -> bytes:
    return props.encode(properties) if level == MQTT_5 else b""


def _number(value: int) -> bytes:
    return value.to_bytes(2, "big")
