"""IoT Core's limits, and the consequences of exceeding them."""

from __future__ import annotations

import socket

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infra.local.iot.broker.limits import Limits
from infra.local.iot.mqtt.encoding import encode
from infra.local.iot.mqtt.packets import (
    MQTT_3,
    MQTT_5,
    Connack,
    Connect,
    Packet,
    Pingreq,
    Puback,
    Publish,
    Subscribe,
    Will,
)
from infra.local.iot.mqtt.properties import Properties
from infra.local.iot.mqtt.reason_codes import ReasonCode
from tests.helpers.clock import Clock
from tests.helpers.mqtt_client import (
    DOWN,
    UP,
    EmbeddedBroker,
    RawMqttClient,
    backend,
    client,
    disconnect_reason,
    next_lifecycle_event,
    running_broker,
)


def test_connack_states_granted_limits(served: EmbeddedBroker) -> None:
    with RawMqttClient(served.port, MQTT_5) as wire:
        properties = Properties(session_expiry=86_400, receive_maximum=5)
        connack = wire.connect("", keepalive=5, properties=properties)
        granted = connack.properties
        assert granted
        assert (granted.session_expiry, granted.server_keepalive, granted.maximum_packet_size) == (0, 30, 149_504)
        assert (granted.maximum_qos, granted.retain_available, granted.topic_alias_maximum) == (True, False, None)
        assert (granted.identifier_available, granted.shared_available) == (False, False)
        assert granted.assigned_client_id


@pytest.mark.parametrize(("level", "code"), [(MQTT_3, 5), (MQTT_5, ReasonCode.RETAIN_NOT_SUPPORTED)])
def test_retained_will_is_refused(served: EmbeddedBroker, level: int, code: int) -> None:
    with RawMqttClient(served.port, level) as wire:
        assert wire.connect("lamp", will=Will(UP, b"gone", retain=True)).reason == code
        assert wire.receive() is None


def test_retained_message_ends_the_connection_of_old_clients_too(served: EmbeddedBroker) -> None:
    with served.heard(UP) as heard, client(served, "lamp") as lamp:
        lamp.publish(UP, b"x", retain=True)
        assert lamp.receive() is None
        assert heard.empty()


def test_subscriptions_are_granted_at_qos_0(served: EmbeddedBroker) -> None:
    with backend(served) as home, client(served, "lamp") as lamp:
        assert lamp.subscribe(DOWN, qos=1) == [0]
        home.publish(DOWN, b"x", qos=1, packet_id=1)
        assert lamp.expect(Publish) == Publish(DOWN, b"x")
        lamp.send(Puback(1))  # nothing waits for it
        assert lamp.receive() is None


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (Publish(UP, b"x" * (128 * 1024 + 1)), ReasonCode.PACKET_TOO_LARGE),
        (Publish(UP, b"x" * 200_000), ReasonCode.PACKET_TOO_LARGE),
        (Publish(UP, qos=2, packet_id=1), ReasonCode.QOS_NOT_SUPPORTED),
        (Publish("a/" * 8 + "a"), ReasonCode.TOPIC_NAME_INVALID),
        (Publish("x" * 257), ReasonCode.TOPIC_NAME_INVALID),
        (Publish(UP, retain=True), ReasonCode.RETAIN_NOT_SUPPORTED),
        (Publish(UP, properties=Properties(subscription_identifier=1)), ReasonCode.PROTOCOL_ERROR),
        (Publish(UP, properties=Properties(topic_alias=1)), ReasonCode.TOPIC_ALIAS_INVALID),
        (Publish("", properties=Properties(topic_alias=1)), ReasonCode.TOPIC_ALIAS_INVALID),
        (Puback(1), ReasonCode.PROTOCOL_ERROR),
        (Subscribe(1, [(DOWN, 2)]), ReasonCode.QOS_NOT_SUPPORTED),
        (Subscribe(1, [(DOWN, 0)] * 9), ReasonCode.QUOTA_EXCEEDED),
        (
            Subscribe(1, [(DOWN, 0)], Properties(subscription_identifier=1)),
            ReasonCode.SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED,
        ),
        (Connect("lamp", MQTT_5), ReasonCode.PROTOCOL_ERROR),
        (Connack(), ReasonCode.PROTOCOL_ERROR),
    ],
)
def test_exceeded_limit_disconnects_with_reason_code(
    served: EmbeddedBroker, packet: Packet, reason: ReasonCode
) -> None:
    with client(served, "lamp", MQTT_5) as lamp:
        lamp.send(packet)
        assert disconnect_reason(lamp) == reason


def test_invalid_filter_is_rejected_individually(served: EmbeddedBroker) -> None:
    limits = Limits()
    with backend(served) as home:
        assert home.subscribe("$share/a/devices/+/up", "devices/" * 8 + "x", "devices/" + "x" * 250, UP) == [
            ReasonCode.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED,
            ReasonCode.TOPIC_FILTER_INVALID,
            ReasonCode.TOPIC_FILTER_INVALID,
            0,
        ]
        for number in range(limits.subscriptions - 1):
            assert home.subscribe(f"devices/{number}/up") == [0]
        assert home.subscribe("devices/one-more/up", UP) == [ReasonCode.QUOTA_EXCEEDED, 0]


@pytest.mark.parametrize(
    "first",
    [encode(Pingreq(), MQTT_3), b"\x10\xff\xff\xff\x7f", b"GET / HTTP/1.1\r\n\r\n", b"\x10\x02\0\0", b"\x16\x03\x01\0"],
)
def test_first_packet_must_be_connect(served: EmbeddedBroker, first: bytes) -> None:
    with RawMqttClient(served.port) as wire:
        wire.socket.sendall(first)
        assert wire.receive() is None


def test_unsupported_protocol_version_is_rejected(served: EmbeddedBroker) -> None:
    with RawMqttClient(served.port) as wire:
        wire.socket.sendall(b"\x10\x0e\0\6MQIsdp\3\2\0\0\0\0")
        assert wire.expect(Connack).reason == 1
        assert wire.receive() is None


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.binary(min_size=1, max_size=200), st.booleans())
def test_broker_survives_random_bytes(served: EmbeddedBroker, garbage: bytes, after_connect: bool) -> None:
    with RawMqttClient(served.port, MQTT_5) as wire:
        if after_connect:
            wire.connect("fuzzer")
        wire.socket.sendall(garbage)
        wire.socket.shutdown(socket.SHUT_WR)
        while wire.socket.recv(4096):
            continue
    with client(served, "lamp") as lamp:
        assert lamp.settle() == []


def test_truncated_message_is_never_delivered(served: EmbeddedBroker) -> None:
    with served.heard("devices/+/up") as heard, served.heard("$aws/events/presence/+/lamp") as events:
        lamp = client(served, "lamp")
        lamp.socket.sendall(encode(Publish(UP, b"x" * 1000), MQTT_3)[:500])
        lamp.socket.close()
        next_lifecycle_event(events, "connected")
        assert next_lifecycle_event(events, "disconnected")["disconnectReason"] == "CONNECTION_LOST"
        assert heard.empty()


def test_publish_rate_is_limited_to_100_per_second() -> None:
    clock = Clock()
    with running_broker(clock=clock) as served, served.heard(UP) as heard, client(served, "lamp", MQTT_5) as lamp:
        for seconds, accepted in ((0, 100), (0.5, 50), (60, 100)):
            clock.advance(seconds)
            dropped, before = served.broker.broker.counters.dropped_rate, heard.qsize()
            lamp.send(*(Publish(UP, qos=1, packet_id=number) for number in range(1, 301)))
            reasons = [lamp.expect(Puback).reason for _ in range(300)]
            assert reasons == [0] * accepted + [ReasonCode.QUOTA_EXCEEDED] * (300 - accepted)
            assert served.broker.broker.counters.dropped_rate - dropped == 300 - accepted
            assert heard.qsize() - before == accepted
