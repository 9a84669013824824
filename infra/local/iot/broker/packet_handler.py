"""Handler of a connected client's packets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from infra.local.iot.broker.limits import fits
from infra.local.iot.broker.messages import BrokerMessage
from infra.local.iot.broker.presence import DisconnectReason
from infra.local.iot.mqtt import packets
from infra.local.iot.mqtt.reason_codes import SUBACK_3_FAILURE, MalformedPacket, ReasonCode
from shared.platform.token_bucket import BucketSize, TokenBucket

if TYPE_CHECKING:
    from infra.local.iot.broker.broker import Broker
    from infra.local.iot.broker.connection import BrokerConnection

_MAX_CACHED_TOPICS: Final = 32


class PacketHandler:
    """The handler of one client's packets after its CONNECT."""

    def __init__(self, broker: Broker, connection: BrokerConnection) -> None:
        self._broker = broker
        self._limits = broker.limits
        self._connection = connection
        self._client = connection.client
        self._session = connection.session
        self._level = connection.level
        rate = broker.limits.publishes_per_second
        self._publishes = TokenBucket(BucketSize(rate, rate * 60)) if rate else None
        self._allowed_topics: set[str] = set()
        self._aliases: dict[int, str] = {}

    def handle(self, packet: packets.Packet, now: float) -> None:
        """Handle one packet."""
        match packet:
            case packets.Publish():
                self._publish(packet, now)
            case packets.Puback():
                self._session.acknowledge(packet.packet_id)
            case packets.Pingreq():
                self._connection.send(packets.Pingresp())
            case packets.Subscribe():
                self._subscribe(packet)
            case packets.Unsubscribe():
                existed = [self._broker.unsubscribe(self._session, each) for each in packet.topic_filters]
                reasons: list[int] = [0 if each else ReasonCode.NO_SUBSCRIPTION_EXISTED for each in existed]
                self._connection.send(
                    packets.Unsuback(packet.packet_id, reasons if self._level == packets.MQTT_5 else [])
                )
            case packets.Disconnect():
                self._disconnect(packet)
            case _:
                raise MalformedPacket("the packet is not valid from a client", ReasonCode.PROTOCOL_ERROR)

    def _publish(self, packet: packets.Publish, now: float) -> None:
        properties = packet.properties
        topic = packet.topic
        if properties:
            if properties.subscription_identifier is not None:
                raise MalformedPacket("a PUBLISH of a client has a subscription identifier", ReasonCode.PROTOCOL_ERROR)
            topic = self._resolve_alias(topic, properties.topic_alias)
            properties.topic_alias = None
        if packet.qos == 2:
            self._connection.end(ReasonCode.QOS_NOT_SUPPORTED, DisconnectReason.CLIENT_ERROR)
            return
        if len(packet.payload) > self._limits.payload_bytes:
            raise MalformedPacket("a payload is too large", ReasonCode.PACKET_TOO_LARGE)
        if topic not in self._allowed_topics and not self._may_publish(topic):
            return
        if self._publishes and not self._publishes.take(now):
            self._broker.counters.dropped_rate += 1
            if packet.qos and self._level == packets.MQTT_5:
                self._connection.send(packets.Puback(packet.packet_id, ReasonCode.QUOTA_EXCEEDED))
            return
        client_id = self._client.client_id
        message = BrokerMessage(topic, packet.payload, packet.qos, packet.retain, properties, client_id)
        has_subscribers = self._broker.publish(message)
        if packet.qos:
            code = ReasonCode.SUCCESS if has_subscribers else ReasonCode.NO_MATCHING_SUBSCRIBERS
            self._connection.send(packets.Puback(packet.packet_id, code))

    def _resolve_alias(self, topic: str, alias: int | None) -> str:
        if alias is None:
            return topic
        if not 0 < alias <= self._limits.topic_aliases:
            raise MalformedPacket("a topic alias is out of range", ReasonCode.TOPIC_ALIAS_INVALID)
        if topic:
            self._aliases[alias] = topic
        elif alias not in self._aliases:
            raise MalformedPacket("a topic alias is unknown", ReasonCode.PROTOCOL_ERROR)
        return self._aliases[alias]

    def _may_publish(self, topic: str) -> bool:
        """Return True if the client may publish there; otherwise end the connection, as IoT Core does."""
        if not fits(self._limits, topic):
            self._connection.end(ReasonCode.TOPIC_NAME_INVALID, DisconnectReason.CLIENT_ERROR)
            return False
        if not self._broker.access.publish(self._client, topic):
            self._broker.counters.refused += 1
            self._connection.end(ReasonCode.NOT_AUTHORIZED, DisconnectReason.AUTH_ERROR)
            return False
        if len(self._allowed_topics) >= _MAX_CACHED_TOPICS:
            self._allowed_topics.clear()
        self._allowed_topics.add(topic)
        return True

    def _subscribe(self, packet: packets.Subscribe) -> None:
        if packet.properties and packet.properties.subscription_identifier is not None:
            reason = ReasonCode.SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED
            raise MalformedPacket("subscription identifiers are not supported", reason)
        if len(packet.requests) > self._limits.filters_per_subscribe:
            self._connection.end(ReasonCode.QUOTA_EXCEEDED, DisconnectReason.CLIENT_ERROR)
            return
        if any(request.qos == 2 for request in packet.requests):
            self._connection.end(ReasonCode.QOS_NOT_SUPPORTED, DisconnectReason.CLIENT_ERROR)
            return
        known_filters = set(self._session.subscriptions)
        reasons = [self._subscribe_one(request) for request in packet.requests]
        self._connection.send(packets.Suback(packet.packet_id, reasons))
        for request, code in zip(packet.requests, reasons, strict=True):
            new = request.topic_filter not in known_filters
            if code < ReasonCode.UNSPECIFIED and (
                request.retain_handling == 0 or (request.retain_handling == 1 and new)
            ):
                self._broker.send_retained(self._session, request)

    def _subscribe_one(self, request: packets.SubscriptionRequest) -> int:
        """Subscribe and return the reason code for the SUBACK."""
        error: ReasonCode | None = None
        full = len(self._session.subscriptions) >= self._limits.subscriptions
        if request.topic_filter.startswith("$share/"):
            error = ReasonCode.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED
        elif not fits(self._limits, request.topic_filter):
            error = ReasonCode.TOPIC_FILTER_INVALID
        elif not self._broker.access.subscribe(self._client, request.topic_filter):
            self._broker.counters.refused += 1
            error = ReasonCode.NOT_AUTHORIZED
        elif full and request.topic_filter not in self._session.subscriptions:
            error = ReasonCode.QUOTA_EXCEEDED
        if error is not None:
            return error if self._level == packets.MQTT_5 else SUBACK_3_FAILURE
        self._broker.subscribe(self._session, request)
        return request.qos

    def _disconnect(self, packet: packets.Disconnect) -> None:
        expiry = packet.properties.session_expiry if packet.properties else None
        if expiry is not None:
            if expiry and not self._session.expiry_seconds:
                raise MalformedPacket(
                    "a DISCONNECT extends a session that ends with the connection", ReasonCode.PROTOCOL_ERROR
                )
            self._session.expiry_seconds = min(expiry, self._limits.session_seconds)
        self._connection.close(with_will=packet.reason == ReasonCode.DISCONNECT_WITH_WILL)
