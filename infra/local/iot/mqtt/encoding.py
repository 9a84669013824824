"""Packet encoding."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from infra.local.iot.mqtt import packets
from infra.local.iot.mqtt import properties as props
from infra.local.iot.mqtt.packets import RESERVED_FLAGS, Kind
from infra.local.iot.mqtt.primitives import binary, packet, text

if TYPE_CHECKING:
    from infra.local.iot.mqtt.properties import Properties


def encode(value: packets.Packet, level: int) -> bytes:  # noqa: C901 - one case per packet
    """Encode a packet."""
    match value:
        case packets.Publish():
            return publish(value, level)
        case packets.Puback():
            reason = _reason(value.reason, value.properties, level)
            return packet(Kind.PUBACK << 4, _number(value.packet_id) + reason)
        case packets.Connect():
            return _connect(value)
        case packets.Connack():
            body = bytes((value.session_present, value.reason)) + _properties(value.properties, level)
            return packet(Kind.CONNACK << 4, body)
        case packets.Subscribe():
            requests = b"".join(text(each.topic_filter) + _options(each) for each in value.requests)
            body = _number(value.packet_id) + _properties(value.properties, level) + requests
            return packet(Kind.SUBSCRIBE << 4 | RESERVED_FLAGS[Kind.SUBSCRIBE], body)
        case packets.Suback() | packets.Unsuback():
            body = _number(value.packet_id) + _properties(value.properties, level) + bytes(value.reasons)
            return packet((Kind.SUBACK if isinstance(value, packets.Suback) else Kind.UNSUBACK) << 4, body)
        case packets.Unsubscribe():
            filters = b"".join(map(text, value.topic_filters))
            body = _number(value.packet_id) + _properties(value.properties, level) + filters
            return packet(Kind.UNSUBSCRIBE << 4 | RESERVED_FLAGS[Kind.UNSUBSCRIBE], body)
        case packets.Disconnect():
            return packet(Kind.DISCONNECT << 4, _reason(value.reason, value.properties, level))
        case packets.Pingreq():
            return PINGREQ
        case packets.Pingresp():
            return PINGRESP
    assert_never(value)


def publish(message: packets.Publish, level: int) -> bytes:
    """Encode a PUBLISH packet."""
    flags = message.duplicate * packets.DUPLICATE | message.qos << 1 | message.retain * packets.RETAIN
    parts = [text(message.topic)]
    if message.qos:
        parts.append(_number(message.packet_id))
    if level == packets.MQTT_5:
        parts.append(props.encode(message.properties))
    parts.append(message.payload)
    return packet(Kind.PUBLISH << 4 | flags, b"".join(parts))


PINGREQ = packet(Kind.PINGREQ << 4, b"")
PINGRESP = packet(Kind.PINGRESP << 4, b"")


def _connect(value: packets.Connect) -> bytes:
    will, level = value.will, value.level
    flags = value.clean * packets.CLEAN
    flags |= (value.password is not None) * packets.PASSWORD | (value.user_name is not None) * packets.USER_NAME
    if will:
        flags |= packets.WILL | will.qos << 3 | will.retain * packets.WILL_RETAIN
    parts = [text("MQTT"), bytes((level, flags)), _number(value.keepalive), _properties(value.properties, level)]
    parts.append(text(value.client_id))
    if will:
        parts += (_properties(will.properties, level), text(will.topic), binary(will.payload))
    if value.user_name is not None:
        parts.append(text(value.user_name))
    if value.password is not None:
        parts.append(binary(value.password))
    return packet(Kind.CONNECT << 4, b"".join(parts))


def _options(request: packets.SubscriptionRequest) -> bytes:
    flags = request.no_local * packets.NO_LOCAL | request.retain_as_published * packets.RETAIN_AS_PUBLISHED
    return bytes((request.qos | flags | request.retain_handling << 4,))


def _reason(reason: int, properties: Properties | None, level: int) -> bytes:
    if level == packets.MQTT_3 or (not reason and properties is None):
        return b""
    return bytes((reason,)) + (props.encode(properties) if properties else b"")


def _properties(properties: Properties | None, level: int) -> bytes:
    return props.encode(properties) if level == packets.MQTT_5 else b""


def _number(value: int) -> bytes:
    return value.to_bytes(2, "big")
