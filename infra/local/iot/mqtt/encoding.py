"""Packet encoding."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from infra.local.iot.mqtt import packets
from infra.local.iot.mqtt import properties as props
from infra.local.iot.mqtt.packets import RESERVED_FLAGS, Kind
from infra.local.iot.mqtt.primitives import binary, number, packet, text

if TYPE_CHECKING:
    from infra.local.iot.mqtt.properties import Properties


def encode(value: packets.Packet, level: int) -> bytes:  # noqa: C901 - one case per packet
    """Encode a packet."""
    match value:
        case packets.Publish():
            packet_id = number(value.packet_id) if value.qos else b""
            body = text(value.topic) + packet_id + _properties(value.properties, level) + value.payload
            return packet(Kind.PUBLISH << 4 | value.qos << 1 | value.retain * packets.RETAIN, body)
        case packets.Puback():
            return packet(Kind.PUBACK << 4, number(value.packet_id) + _reason(value.reason, level))
        case packets.Connect():
            return _connect(value)
        case packets.Connack():
            return packet(Kind.CONNACK << 4, bytes((0, value.reason)) + _properties(value.properties, level))
        case packets.Subscribe():
            requests = b"".join(text(topic_filter) + bytes((qos,)) for topic_filter, qos in value.requests)
            body = number(value.packet_id) + _properties(value.properties, level) + requests
            return packet(Kind.SUBSCRIBE << 4 | RESERVED_FLAGS[Kind.SUBSCRIBE], body)
        case packets.Suback() | packets.Unsuback():
            kind = Kind.SUBACK if isinstance(value, packets.Suback) else Kind.UNSUBACK
            return packet(kind << 4, number(value.packet_id) + _properties(None, level) + bytes(value.reasons))
        case packets.Unsubscribe():
            body = number(value.packet_id) + _properties(None, level) + b"".join(map(text, value.topic_filters))
            return packet(Kind.UNSUBSCRIBE << 4 | RESERVED_FLAGS[Kind.UNSUBSCRIBE], body)
        case packets.Disconnect():
            return packet(Kind.DISCONNECT << 4, _reason(value.reason, level))
        case packets.Pingreq():
            return packet(Kind.PINGREQ << 4, b"")
        case packets.Pingresp():
            return packet(Kind.PINGRESP << 4, b"")
    assert_never(value)


def _connect(value: packets.Connect) -> bytes:
    will, level = value.will, value.level
    flags = value.clean * packets.CLEAN
    flags |= (value.password is not None) * packets.PASSWORD | (value.user_name is not None) * packets.USER_NAME
    if will:
        flags |= packets.WILL | will.qos << 3 | will.retain * packets.WILL_RETAIN
    parts = [text("MQTT"), bytes((level, flags)), number(value.keepalive), _properties(value.properties, level)]
    parts.append(text(value.client_id))
    if will:
        parts += (_properties(will.properties, level), text(will.topic), binary(will.payload))
    if value.user_name is not None:
        parts.append(text(value.user_name))
    if value.password is not None:
        parts.append(binary(value.password))
    return packet(Kind.CONNECT << 4, b"".join(parts))


def _reason(reason: int, level: int) -> bytes:
    return bytes((reason,)) if reason and level == packets.MQTT_5 else b""


def _properties(properties: Properties | None, level: int) -> bytes:
    return props.encode(properties) if level == packets.MQTT_5 else b""
