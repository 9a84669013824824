"""Handler of a connected client's packets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.local.iot.broker.limits import fits
from infra.local.iot.broker.messages import BrokerMessage
from infra.local.iot.broker.presence import DisconnectReason
from infra.local.iot.mqtt import packets
from infra.local.iot.mqtt.reason_codes import MalformedPacket, ReasonCode
from shared.platform.token_bucket import BucketSize, TokenBucket

if TYPE_CHECKING:
    from infra.local.iot.broker.broker import Broker
    from infra.local.iot.broker.connection import BrokerConnection


class PacketHandler:
    """The handler of one client's packets after its CONNECT."""

    def __init__(self, broker: Broker, connection: BrokerConnection) -> None:
        self._broker = broker
        self._limits = broker.limits
        self._connection = connection
        self._level = connection.level
        rate = broker.limits.publishes_per_second
        self._publishes = TokenBucket(BucketSize(rate, rate * 60)) if rate else None

    def handle(self, packet: packets.Packet, now: float) -> None:
        """Handle one packet."""
        match packet:
            case packets.Publish():
                self._publish(packet, now)
            case packets.Pingreq():
                self._connection.send(packets.Pingresp())
            case packets.Subscribe():
                self._subscribe(packet)
            case packets.Unsubscribe():
                existed = [self._broker.unsubscribe(self._connection, each) for each in packet.topic_filters]
                reasons: list[int] = [0 if each else ReasonCode.NO_SUBSCRIPTION_EXISTED for each in existed]
                self._connection.send(
                    packets.Unsuback(packet.packet_id, reasons if self._level == packets.MQTT_5 else [])
                )
            case packets.Disconnect():
                self._connection.close(with_will=packet.reason == ReasonCode.DISCONNECT_WITH_WILL)
            case _:
                raise MalformedPacket("the packet is not valid from a client", ReasonCode.PROTOCOL_ERROR)

    def _publish(self, packet: packets.Publish, now: float) -> None:
        if (error := self._message_error(packet)) is not None:
            raise MalformedPacket("a message is not within the limits", error)
        if not self._broker.access.publish(self._connection.client, packet.topic):
            self._broker.counters.refused += 1
            self._connection.end(ReasonCode.NOT_AUTHORIZED, DisconnectReason.AUTH_ERROR)  # as IoT Core does
            return
        code = ReasonCode.SUCCESS
        if self._publishes and not self._publishes.take(now):
            self._broker.counters.dropped_rate += 1
            if self._level != packets.MQTT_5:
                return
            code = ReasonCode.QUOTA_EXCEEDED
        elif not self._broker.publish(BrokerMessage(packet.topic, packet.payload, packet.properties)):
            code = ReasonCode.NO_MATCHING_SUBSCRIBERS
        if packet.qos:
            self._connection.send(packets.Puback(packet.packet_id, code))

    def _message_error(self, packet: packets.Publish) -> ReasonCode | None:
        """Return the reason to end the connection because of a message."""
        if packet.qos == 2:
            return ReasonCode.QOS_NOT_SUPPORTED
        if packet.retain:
            return ReasonCode.RETAIN_NOT_SUPPORTED
        if len(packet.payload) > self._limits.payload_bytes:
            return ReasonCode.PACKET_TOO_LARGE
        return None if fits(self._limits, packet.topic) else ReasonCode.TOPIC_NAME_INVALID

    def _subscribe(self, packet: packets.Subscribe) -> None:
        if packet.properties and packet.properties.subscription_identifier is not None:
            reason = ReasonCode.SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED
            raise MalformedPacket("subscription identifiers are not supported", reason)
        if len(packet.requests) > self._limits.filters_per_subscribe:
            raise MalformedPacket("a SUBSCRIBE has too many filters", ReasonCode.QUOTA_EXCEEDED)
        if any(qos == 2 for _, qos in packet.requests):
            raise MalformedPacket("QoS 2 is not supported", ReasonCode.QOS_NOT_SUPPORTED)
        reasons = [self._subscribe_one(topic_filter) for topic_filter, _ in packet.requests]
        self._connection.send(packets.Suback(packet.packet_id, reasons))

    def _subscribe_one(self, topic_filter: str) -> int:
        """Subscribe and return the reason code for the SUBACK, which grants QoS 0."""
        error: ReasonCode | None = None
        subscriptions = self._connection.subscriptions
        if topic_filter.startswith("$share/"):
            error = ReasonCode.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED
        elif not fits(self._limits, topic_filter):
            error = ReasonCode.TOPIC_FILTER_INVALID
        elif not self._broker.access.subscribe(self._connection.client, topic_filter):
            self._broker.counters.refused += 1
            error = ReasonCode.NOT_AUTHORIZED
        elif len(subscriptions) >= self._limits.subscriptions and topic_filter not in subscriptions:
            error = ReasonCode.QUOTA_EXCEEDED
        if error is not None:
            return error if self._level == packets.MQTT_5 else ReasonCode.UNSPECIFIED
        self._broker.subscribe(self._connection, topic_filter)
        return ReasonCode.SUCCESS
