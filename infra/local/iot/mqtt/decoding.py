"""Strict packet decoding: invalid packets are rejected with a reason code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from infra.local.iot.mqtt import packets
from infra.local.iot.mqtt import properties as props
from infra.local.iot.mqtt.packets import Kind
from infra.local.iot.mqtt.primitives import PacketReader, text_from
from infra.local.iot.mqtt.reason_codes import MalformedPacket, ReasonCode
from infra.local.iot.mqtt.topics import is_filter, is_topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.local.iot.mqtt.properties import Properties


def decode(header: int, body: bytes, level: int) -> packets.Packet:
    """Decode the packet with this first byte and body."""
    kind, flags = header >> 4, header & 0x0F
    if kind == Kind.PUBLISH:
        return _publish(flags, body, level)
    decoder = _DECODERS.get(kind)
    if decoder is None:
        raise MalformedPacket(f"packets of type {kind} are not supported", ReasonCode.PROTOCOL_ERROR)
    if flags != packets.RESERVED_FLAGS.get(Kind(kind), 0):
        raise MalformedPacket("reserved flags are set")
    reader = PacketReader(body)
    packet = decoder(reader, level)
    reader.finish()
    return packet


def _publish(flags: int, body: bytes, level: int) -> packets.Publish:
    qos = flags >> 1 & 3
    if qos == 3 or (flags & packets.DUPLICATE and not qos):
        raise MalformedPacket("flags of a PUBLISH contradict each other")
    position = 2 + int.from_bytes(body[:2], "big")
    if position > len(body) or len(body) < 2:
        raise MalformedPacket("the packet is truncated")
    topic = text_from(body[2:position])
    packet_id = 0
    if qos:
        packet_id = int.from_bytes(body[position : position + 2], "big")
        position += 2
        if position > len(body) or not packet_id:
            raise MalformedPacket("a message at QoS 1 has no packet identifier")
    properties = None
    if level == packets.MQTT_5:
        reader = PacketReader(body, position)
        properties = props.decode(reader, Kind.PUBLISH)
        position = reader.position
        _check_message(properties)
    if (topic or not (properties and properties.topic_alias is not None)) and not is_topic(topic):
        raise MalformedPacket("a topic is empty or has wildcards", ReasonCode.TOPIC_NAME_INVALID)
    return packets.Publish(
        topic,
        body[position:],
        qos,
        bool(flags & packets.RETAIN),
        bool(flags & packets.DUPLICATE),
        packet_id,
        properties,
    )


def _check_message(properties: Properties | None) -> None:
    if properties and properties.response_topic is not None and not is_topic(properties.response_topic):
        raise MalformedPacket("a response topic is empty or has wildcards", ReasonCode.PROTOCOL_ERROR)


def _connect(reader: PacketReader, _: int) -> packets.Connect:
    name, level = reader.text(), reader.integer(1)
    if (name, level) not in (("MQTT", packets.MQTT_3), ("MQTT", packets.MQTT_5)):
        raise MalformedPacket(f"{name} {level} is not supported", ReasonCode.UNSUPPORTED_PROTOCOL_VERSION)
    flags = reader.integer(1)
    has_will, will_qos, will_retain = bool(flags & packets.WILL), flags >> 3 & 3, bool(flags & packets.WILL_RETAIN)
    has_user, has_password = bool(flags & packets.USER_NAME), bool(flags & packets.PASSWORD)
    if flags & 1 or will_qos == 3 or (not has_will and (will_qos or will_retain)):
        raise MalformedPacket("flags of a CONNECT contradict each other")
    if level == packets.MQTT_3 and has_password and not has_user:
        raise MalformedPacket("a CONNECT has a password but no user name")
    keepalive = reader.integer(2)
    properties = props.decode(reader, Kind.CONNECT) if level == packets.MQTT_5 else None
    client_id = reader.text()
    will = None
    if has_will:
        will_properties = props.decode(reader, Kind.WILL) if level == packets.MQTT_5 else None
        _check_message(will_properties)
        topic = reader.text()
        if not is_topic(topic):
            raise MalformedPacket("a will's topic is empty or has wildcards", ReasonCode.TOPIC_NAME_INVALID)
        will = packets.Will(topic, reader.binary(), will_qos, will_retain, will_properties)
    return packets.Connect(
        client_id,
        level,
        clean=bool(flags & packets.CLEAN),
        keepalive=keepalive,
        will=will,
        user_name=reader.text() if has_user else None,
        password=reader.binary() if has_password else None,
        properties=properties,
    )


def _connack(reader: PacketReader, level: int) -> packets.Connack:
    flags, reason = reader.integer(1), reader.integer(1)
    if flags > 1:
        raise MalformedPacket("reserved flags are set")
    return packets.Connack(reason, bool(flags), _properties(reader, Kind.CONNACK, level))


def _subscribe(reader: PacketReader, level: int) -> packets.Subscribe:
    packet_id, properties = _head(reader, Kind.SUBSCRIBE, level)
    requests = []
    while reader.remaining:
        topic_filter, options = _filter(reader), reader.integer(1)
        qos, handling = options & 3, options >> 4 & 3
        if qos == 3 or handling == 3 or options & (0xC0 if level == packets.MQTT_5 else 0xFC):
            raise MalformedPacket("subscription options are invalid")
        requests.append(
            packets.SubscriptionRequest(
                topic_filter,
                qos,
                bool(options & packets.NO_LOCAL),
                bool(options & packets.RETAIN_AS_PUBLISHED),
                handling,
            )
        )
    if not requests:
        raise MalformedPacket("a SUBSCRIBE has no filter", ReasonCode.PROTOCOL_ERROR)
    return packets.Subscribe(packet_id, requests, properties)


def _suback(reader: PacketReader, level: int) -> packets.Suback:
    packet_id, properties = _head(reader, Kind.SUBACK, level)
    return packets.Suback(packet_id, list(reader.rest()), properties)


def _unsubscribe(reader: PacketReader, level: int) -> packets.Unsubscribe:
    packet_id, properties = _head(reader, Kind.UNSUBSCRIBE, level)
    filters = []
    while reader.remaining:
        filters.append(_filter(reader))
    if not filters:
        raise MalformedPacket("an UNSUBSCRIBE has no filter", ReasonCode.PROTOCOL_ERROR)
    return packets.Unsubscribe(packet_id, filters, properties)


def _unsuback(reader: PacketReader, level: int) -> packets.Unsuback:
    packet_id, properties = _head(reader, Kind.UNSUBACK, level)
    return packets.Unsuback(packet_id, list(reader.rest()), properties)


def _reason(reader: PacketReader, kind: Kind, level: int) -> tuple[int, Properties | None]:
    """Read a reason code and properties, which may be absent."""
    if level == packets.MQTT_3 or not reader.remaining:
        return 0, None
    return reader.integer(1), props.decode(reader, kind) if reader.remaining else None


def _properties(reader: PacketReader, kind: Kind, level: int) -> Properties | None:
    return props.decode(reader, kind) if level == packets.MQTT_5 else None


def _head(reader: PacketReader, kind: Kind, level: int) -> tuple[int, Properties | None]:
    """Read the packet identifier and the properties."""
    packet_id = reader.integer(2)
    if not packet_id:
        raise MalformedPacket("a packet identifier is 0")
    return packet_id, _properties(reader, kind, level)


def _filter(reader: PacketReader) -> str:
    topic_filter = reader.text()
    if not is_filter(topic_filter):
        raise MalformedPacket("a filter is empty or has a misplaced wildcard", ReasonCode.TOPIC_FILTER_INVALID)
    return topic_filter


_DECODERS: Final[dict[int, Callable[[PacketReader, int], packets.Packet]]] = {
    Kind.CONNECT: _connect,
    Kind.CONNACK: _connack,
    Kind.PUBACK: lambda reader, level: packets.Puback(reader.integer(2), *_reason(reader, Kind.PUBACK, level)),
    Kind.SUBSCRIBE: _subscribe,
    Kind.SUBACK: _suback,
    Kind.UNSUBSCRIBE: _unsubscribe,
    Kind.UNSUBACK: _unsuback,
    Kind.PINGREQ: lambda _reader, _level: packets.Pingreq(),
    Kind.PINGRESP: lambda _reader, _level: packets.Pingresp(),
    Kind.DISCONNECT: lambda reader, level: packets.Disconnect(*_reason(reader, Kind.DISCONNECT, level)),
}
