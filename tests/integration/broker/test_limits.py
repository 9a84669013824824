"""IoT Core's limits, and what becomes of who goes beyond them."""

from __future__ import annotations

import socket

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infra.local.broker.limits import Limits
from infra.local.mqtt.encoding import encode
from infra.local.mqtt.packets import (
    MQTT_3,
    MQTT_5,
    Connack,
    Connect,
    Disconnect,
    Pingreq,
    Puback,
    Publish,
    Request,
    Subscribe,
)
from infra.local.mqtt.properties import Properties
from infra.local.mqtt.reasons import Reason
from tests.helpers.clock import Clock
from tests.mqtt import DOWN, UP, Served, Wire, backend, client, ended, event, running_broker


def test_what_the_broker_grants_is_said_in_connack(served: Served) -> None:
    with Wire(served.port, MQTT_5) as wire:
        asked = Properties(session_expiry=86_400, receive_maximum=5)
        connack = wire.connect("", keepalive=5, properties=asked)
        granted = connack.properties
        assert granted
        assert (granted.session_expiry, granted.server_keepalive, granted.receive_maximum) == (3600, 30, 100)
        assert (granted.maximum_qos, granted.retain_available, granted.topic_alias_maximum) == (True, True, 8)
        assert (granted.identifier_available, granted.shared_available) == (False, False)
        assert granted.assigned_client_id


def test_retained_messages_wait_under_their_own_name(served: Served) -> None:
    with backend(served) as home, client(served, "kept") as device:
        home.publish("devices/kept/down", b"old", retain=True)
        home.publish("devices/kept/down", b"new", retain=True)
        home.settle()
        assert home.subscribe("devices/+/down") == [0]
        assert home.settle() == []  # a wildcard finds nothing, as with IoT Core
        device.subscribe("devices/kept/down")
        assert device.expect(Publish) == Publish("devices/kept/down", b"new", retain=True)
        home.publish("devices/kept/down", b"", retain=True)
        assert device.expect(Publish) == Publish("devices/kept/down", b"")
        device.subscribe("devices/kept/down")
        assert device.settle() == []


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (Publish(UP, b"x" * (128 * 1024 + 1)), Reason.PACKET_TOO_LARGE),
        (Publish(UP, b"x" * 200_000), Reason.PACKET_TOO_LARGE),
        (Publish(UP, qos=2, packet_id=1), Reason.QOS_NOT_SUPPORTED),
        (Publish("a/" * 8 + "a"), Reason.TOPIC_NAME_INVALID),
        (Publish("x" * 257), Reason.TOPIC_NAME_INVALID),
        (Publish(UP, properties=Properties(subscription_identifier=1)), Reason.PROTOCOL_ERROR),
        (Publish("", properties=Properties(topic_alias=8)), Reason.PROTOCOL_ERROR),
        (Publish(UP, properties=Properties(topic_alias=9)), Reason.TOPIC_ALIAS_INVALID),
        (Subscribe(1, [Request(DOWN, qos=2)]), Reason.QOS_NOT_SUPPORTED),
        (Subscribe(1, [Request(DOWN)] * 9), Reason.QUOTA_EXCEEDED),
        (
            Subscribe(1, [Request(DOWN)], Properties(subscription_identifier=1)),
            Reason.SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED,
        ),
        (Connect("lamp", MQTT_5), Reason.PROTOCOL_ERROR),
        (Connack(), Reason.PROTOCOL_ERROR),
        (Disconnect(0, Properties(session_expiry=9)), Reason.PROTOCOL_ERROR),
    ],
)
def test_what_goes_too_far_ends_the_connection_with_its_reason(
    served: Served, packet: Publish | Subscribe | Connect | Connack | Disconnect, reason: Reason
) -> None:
    with client(served, "lamp", MQTT_5) as lamp:
        lamp.send(packet)
        assert ended(lamp) == reason


def test_a_filter_that_goes_too_far_is_refused_alone(served: Served) -> None:
    limits = Limits()
    with backend(served) as home:
        assert home.subscribe("$share/a/devices/+/up", "devices/" * 8 + "x", "devices/" + "x" * 250, UP) == [
            Reason.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED,
            Reason.TOPIC_FILTER_INVALID,
            Reason.TOPIC_FILTER_INVALID,
            0,
        ]
        for number in range(limits.subscriptions - 1):
            assert home.subscribe(f"devices/{number}/up") == [0]
        assert home.subscribe("devices/one-more/up", UP) == [Reason.QUOTA_EXCEEDED, 0]


@pytest.mark.parametrize(
    "first",
    [encode(Pingreq(), MQTT_3), b"\x10\xff\xff\xff\x7f", b"GET / HTTP/1.1\r\n\r\n", b"\x10\x02\0\0", b"\x16\x03\x01\0"],
)
def test_who_does_not_begin_with_connect_is_turned_away(served: Served, first: bytes) -> None:
    with Wire(served.port) as wire:
        wire.socket.sendall(first)
        assert wire.receive() is None


def test_another_version_is_told_that_it_is_not_spoken(served: Served) -> None:
    with Wire(served.port) as wire:
        wire.socket.sendall(b"\x10\x0e\0\6MQIsdp\3\2\0\0\0\0")
        assert wire.expect(Connack).reason == 1
        assert wire.receive() is None


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.binary(min_size=1, max_size=200), st.booleans())
def test_no_bytes_can_hurt_the_broker(served: Served, garbage: bytes, after_connect: bool) -> None:
    with Wire(served.port, MQTT_5) as wire:
        if after_connect:
            wire.connect("fuzzer")
        wire.socket.sendall(garbage)
        wire.socket.shutdown(socket.SHUT_WR)
        while wire.socket.recv(4096):
            continue
    with client(served, "lamp") as lamp:
        assert lamp.settle() == []


def test_a_message_that_breaks_off_in_its_middle_is_never_delivered(served: Served) -> None:
    with served.heard("devices/+/up") as heard, served.heard("$aws/events/presence/+/lamp") as events:
        lamp = client(served, "lamp")
        lamp.socket.sendall(encode(Publish(UP, b"x" * 1000), MQTT_3)[:500])
        lamp.socket.close()
        event(events, "connected")
        assert event(events, "disconnected")["disconnectReason"] == "CONNECTION_LOST"
        assert heard.empty()


def test_a_client_that_publishes_too_often_is_heard_a_hundred_times_a_second() -> None:
    clock = Clock()
    with running_broker(clock=clock) as served, served.heard(UP) as heard, client(served, "lamp", MQTT_5) as lamp:
        for seconds, accepted in ((0, 100), (0.5, 50), (60, 100)):
            clock.advance(seconds)
            dropped, before = served.broker.broker.counts.dropped_rate, heard.qsize()
            lamp.send(*(Publish(UP, qos=1, packet_id=number) for number in range(1, 301)))
            reasons = [lamp.expect(Puback).reason for _ in range(300)]
            assert reasons == [0] * accepted + [Reason.QUOTA_EXCEEDED] * (300 - accepted)
            assert served.broker.broker.counts.dropped_rate - dropped == 300 - accepted
            assert heard.qsize() - before == accepted


def test_what_is_left_of_a_messages_life_is_said() -> None:
    clock = Clock(now=1_000.0)
    with running_broker(clock=clock) as served, backend(served) as home:
        home.publish(UP, b"x", retain=True, properties=Properties(message_expiry=2**32 - 1))
        for seconds, left in ((0, 604_800), (604_000, 800)):
            clock.advance(seconds)
            home.subscribe(UP)
            message = home.expect(Publish)
            assert message.properties
            assert message.properties.message_expiry == left
        clock.advance(800)
        home.subscribe(UP)
        assert home.settle() == []
