"""Strict packet decoding: invalid packets are rejected with a reason code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from infra.local.iot.mqtt import packets
from infra.local.iot.mqtt import properties as props
from infra.local.iot.mqtt.packets import Kind
from infra.local.iot.mqtt.primitives import PacketReader
from infra.local.iot.mqtt.reason_codes import MalformedPacket, ReasonCode
from infra.local.iot.mqtt.topics import is_filter, is_topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.local.iot.mqtt.properties import Properties


def decode(header: int, body: bytes, level: int) -> packets.Packet:
    """Decode the packet with this first byte and body."""
    kind, flags = header >> 4, header & 0x0F
    reader = PacketReader(body)
    if kind == Kind.PUBLISH:
        return _publish(flags, reader, level)
    decoder = _DECODERS.get(kind)
    if decoder is None:
        raise MalformedPacket(f"packets of type {kind} are not supported", ReasonCode.PROTOCOL_ERROR)
    if flags != packets.RESERVED_FLAGS.get(Kind(kind), 0):
        raise MalformedPacket("reserved flags are set")
    packet = decoder(reader, level)
    reader.finish()
    return packet


def _publish(flags: int, reader: PacketReader, level: int) -> packets.Publish:
    qos = flags >> 1 & 3
    if qos == 3 or (flags & packets.DUPLICATE and not qos):
        raise MalformedPacket("flags of a PUBLISH contradict each other")
    topic = reader.text()
    packet_id = _packet_id(reader) if qos else 0
    properties = _properties(reader, Kind.PUBLISH, level)
    if properties and properties.topic_alias is not None:
        raise MalformedPacket("topic aliases are not supported", ReasonCode.TOPIC_ALIAS_INVALID)
    if not is_topic(topic):
        raise MalformedPacket("a topic is empty or has wildcards", ReasonCode.TOPIC_NAME_INVALID)
    return packets.Publish(topic, reader.rest(), qos, bool(flags & packets.RETAIN), packet_id, properties)


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
    properties = _properties(reader, Kind.CONNECT, level)
    client_id = reader.text()
    will = None
    if has_will:
        will_properties = _properties(reader, Kind.WILL, level)
        topic = reader.text()
        if not is_topic(topic):
            raise MalformedPacket("a will's topic is empty or has wildcards", ReasonCode.TOPIC_NAME_INVALID)
        will = packets.Will(topic, reader.binary(), will_qos, will_retain, will_properties)
    user_name = reader.text() if has_user else None
    password = reader.binary() if has_password else None
    clean = bool(flags & packets.CLEAN)
    return packets.Connect(client_id, level, clean, keepalive, will, user_name, password, properties)


def _connack(reader: PacketReader, level: int) -> packets.Connack:
    flags, reason = reader.integer(1), reader.integer(1)
    if flags > 1:
        raise MalformedPacket("reserved flags are set")
    return packets.Connack(reason, _properties(reader, Kind.CONNACK, level))


def _subscribe(reader: PacketReader, level: int) -> packets.Subscribe:
    packet_id, properties = _packet_id(reader), _properties(reader, Kind.SUBSCRIBE, level)
    requests = []
    while reader.remaining:
        topic_filter, options = _filter(reader), reader.integer(1)
        qos, retain_handling = options & 3, options >> 4 & 3
        if qos == 3 or retain_handling == 3 or options & (0xC0 if level == packets.MQTT_5 else 0xFC):
            raise MalformedPacket("subscription options are invalid")
        requests.append((topic_filter, qos))
    if not requests:
        raise MalformedPacket("a SUBSCRIBE has no filter", ReasonCode.PROTOCOL_ERROR)
    return packets.Subscribe(packet_id, requests, properties)


def _unsubscribe(reader: PacketReader, level: int) -> packets.Unsubscribe:
    packet_id, _ = _packet_id(reader), _properties(reader, Kind.UNSUBSCRIBE, level)
    filters = []
    while reader.remaining:
        filters.append(_filter(reader))
    if not filters:
        raise MalformedPacket("an UNSUBSCRIBE has no filter", ReasonCode.PROTOCOL_ERROR)
    return packets.Unsubscribe(packet_id, filters)


def _acknowledgement(reader: PacketReader, kind: Kind, level: int) -> tuple[int, list[int]]:
    packet_id, _ = _packet_id(reader), _properties(reader, kind, level)
    return packet_id, list(reader.rest())


def _reason(reader: PacketReader, kind: Kind, level: int) -> int:
    """Read a reason code and properties, which may be absent."""
    if level == packets.MQTT_3 or not reader.remaining:
        return 0
    reason = reader.integer(1)
    if reader.remaining:
        props.decode(reader, kind)
    return reason


def _properties(reader: PacketReader, kind: Kind, level: int) -> Properties | None:
    properties = props.decode(reader, kind) if level == packets.MQTT_5 else None
    if properties and properties.response_topic is not None and not is_topic(properties.response_topic):
        raise MalformedPacket("a response topic is empty or has wildcards", ReasonCode.PROTOCOL_ERROR)
    return properties


def _packet_id(reader: PacketReader) -> int:
    packet_id = reader.integer(2)
    if not packet_id:
        raise MalformedPacket("a packet identifier is 0")
    return packet_id


def _filter(reader: PacketReader) -> str:
    topic_filter = reader.text()
    if not is_filter(topic_filter):
        raise MalformedPacket("a filter is empty or has a misplaced wildcard", ReasonCode.TOPIC_FILTER_INVALID)
    return topic_filter


_DECODERS: Final[dict[int, Callable[[PacketReader, int], packets.Packet]]] = {
    Kind.CONNECT: _connect,
    Kind.CONNACK: _connack,
    Kind.PUBACK: lambda reader, level: packets.Puback(reader.integer(2), _reason(reader, Kind.PUBACK, level)),
    Kind.SUBSCRIBE: _subscribe,
    Kind.SUBACK: lambda reader, level: packets.Suback(*_acknowledgement(reader, Kind.SUBACK, level)),
    Kind.UNSUBSCRIBE: _unsubscribe,
    Kind.UNSUBACK: lambda reader, level: packets.Unsuback(*_acknowledgement(reader, Kind.UNSUBACK, level)),
    Kind.PINGREQ: lambda _reader, _level: packets.Pingreq(),
    Kind.PINGRESP: lambda _reader, _level: packets.Pingresp(),
    Kind.DISCONNECT: lambda reader, level: packets.Disconnect(_reason(reader, Kind.DISCONNECT, level)),
}
