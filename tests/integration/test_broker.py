"""The broker's promises, packet by packet, through real connections."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from typing import TYPE_CHECKING

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
    Pingresp,
    Puback,
    Publish,
    Request,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    Will,
)
from infra.local.mqtt.properties import Properties
from infra.local.mqtt.reasons import Reason
from shared.rpc.errors import Unavailable
from tests.mqtt import BACKEND, SECONDS, TOKEN, Served, Wire, backend, client, running_broker

if TYPE_CHECKING:
    import queue
    from collections.abc import Iterator

    from infra.local.broker.access import Client

UP, DOWN = "devices/lamp/up", "devices/lamp/down"
QUICK = Limits(keepalive_seconds=(1, 1200), connect_seconds=0.3, session_seconds=1)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A broker with IoT Core's limits."""
    with running_broker() as running:
        yield running


@pytest.fixture(scope="module")
def quick() -> Iterator[Served]:
    """A broker with little patience."""
    with running_broker(QUICK) as running:
        yield running


def ended(wire: Wire) -> int | None:
    """Why the broker has ended the connection, None where it says nothing; nothing else may come before."""
    packet = wire.receive()
    if packet is None:
        return None
    assert isinstance(packet, Disconnect), packet
    assert wire.receive() is None
    return packet.reason


def event(messages: queue.Queue, kind: str, client_id: str = "lamp") -> dict[str, object]:  # type: ignore[type-arg]
    """The next lifecycle event, which is of this kind."""
    message = messages.get(timeout=SECONDS)
    assert message.topic == f"$aws/events/presence/{kind}/{client_id}"
    told: dict[str, object] = json.loads(message.payload)
    return told


def test_a_message_reaches_who_subscribes_and_nobody_else(served: Served) -> None:
    with backend(served) as home, client(served, "lamp") as lamp, client(served, "fan") as fan:
        assert home.subscribe("devices/+/up") == [0]
        assert lamp.subscribe(DOWN) == [0]
        lamp.publish(UP, b"from the lamp")
        assert home.expect(Publish) == Publish(UP, b"from the lamp")
        home.publish(DOWN, b"to the lamp")
        assert lamp.expect(Publish) == Publish(DOWN, b"to the lamp")
        assert fan.settle() == []
        home.send(Unsubscribe(7, ["devices/+/up", "devices/never"]))
        assert home.expect(Unsuback) == Unsuback(7, [0, Reason.NO_SUBSCRIPTION_EXISTED])
        lamp.publish(UP)
        lamp.settle()
        assert home.settle() == []


@pytest.mark.parametrize(("published", "subscribed", "arrives"), [(0, 1, 0), (1, 0, 0), (1, 1, 1)])
def test_the_lower_quality_of_service_counts(served: Served, published: int, subscribed: int, arrives: int) -> None:
    with backend(served) as home, client(served, "lamp", MQTT_5) as lamp:
        home.subscribe(UP, qos=subscribed)
        lamp.publish(UP, b"x", qos=published, packet_id=9 if published else 0)
        if published:
            assert lamp.expect(Puback) == Puback(9)
        message = home.expect(Publish)
        assert (message.qos, message.duplicate) == (arrives, False)
        assert bool(message.packet_id) == bool(arrives)


def test_everything_an_mqtt_5_message_says_arrives_and_mqtt_3_gets_the_rest(served: Served) -> None:
    said = Properties(
        payload_format=True,
        content_type="application/json",
        response_topic="devices/lamp/down",
        correlation_data=b"\0\1",
        user_properties=[("a", "1"), ("a", "2"), ("đ", "")],
    )
    with client(served, "lamp", MQTT_5) as lamp, backend(served) as new, client(served, f"{BACKEND}-3") as old:
        new.subscribe(UP)
        old.subscribe(UP)
        lamp.publish(UP, b"{}", properties=said)
        assert new.expect(Publish) == Publish(UP, b"{}", properties=said)
        assert old.expect(Publish) == Publish(UP, b"{}")


def test_topic_aliases_stand_for_topics(served: Served) -> None:
    with backend(served) as home, client(served, "lamp", MQTT_5) as lamp:
        home.subscribe(UP)
        lamp.publish(UP, b"1", properties=Properties(topic_alias=8))
        lamp.publish("", b"2", properties=Properties(topic_alias=8))
        assert [home.expect(Publish), home.expect(Publish)] == [
            Publish(UP, b"1"),
            Publish(UP, b"2"),
        ]
        lamp.publish("", b"3", properties=Properties(topic_alias=9))
        assert ended(lamp) == Reason.TOPIC_ALIAS_INVALID


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


def test_mqtt_5_chooses_when_retained_messages_come(served: Served) -> None:
    with backend(served) as home:
        topic = "devices/chosen/down"
        home.publish(topic, b"x", retain=True)
        for handling, comes in ((1, True), (1, False), (2, False), (0, True)):
            home.send(Subscribe(1, [Request(topic, retain_handling=handling, retain_as_published=True)]))
            home.expect(Suback)
            assert bool(home.settle()) is comes, handling
        home.publish(topic, b"y", retain=True)
        assert home.expect(Publish).retain


def test_no_local_spares_a_client_its_own_words(served: Served) -> None:
    with backend(served) as home:
        home.send(Subscribe(1, [Request(UP, no_local=True)]))
        home.expect(Suback)
        home.publish(UP)
        assert home.settle() == []


@pytest.mark.parametrize("level", [MQTT_3, MQTT_5])
@pytest.mark.parametrize("topic", [DOWN, "devices/fan/up", "devices/lamp/up/more", "other", "$aws/events/x"])
def test_a_device_that_publishes_elsewhere_is_disconnected(served: Served, level: int, topic: str) -> None:
    with served.heard("$aws/events/presence/+/lamp") as events, served.heard(topic) as there:
        with client(served, "lamp", level) as lamp:
            lamp.publish(topic, b"x")
            assert ended(lamp) == (Reason.NOT_AUTHORIZED if level == MQTT_5 else None)
        event(events, "connected")
        assert event(events, "disconnected")["disconnectReason"] == "AUTH_ERROR"
        assert there.empty()


def test_a_device_that_subscribes_elsewhere_gets_nothing(served: Served) -> None:
    filters = ("devices/fan/down", "devices/+/down", "devices/#", "#", "$aws/events/#", UP)
    with client(served, "lamp") as old, client(served, "fan", MQTT_5) as new, backend(served) as home:
        assert old.subscribe(*filters) == [0x80] * 6
        assert new.subscribe("devices/lamp/down", "#", "devices/fan/down") == [0x87, 0x87, 0]
        home.publish(DOWN)
        home.settle()
        assert (old.settle(), new.settle()) == ([], [])


@pytest.mark.parametrize(("level", "code"), [(MQTT_3, 5), (MQTT_5, Reason.NOT_AUTHORIZED)])
@pytest.mark.parametrize("client_id", ["+", "#", "a/b", "$aws", "kho-backend-x"])
def test_who_is_not_allowed_is_told_so(served: Served, level: int, code: int, client_id: str) -> None:
    with Wire(served.port, level) as wire:
        assert wire.connect(client_id, user_name="kho", password=b"guessed").reason == code
        assert wire.receive() is None


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (Publish(UP, b"x" * (128 * 1024 + 1)), Reason.PACKET_TOO_LARGE),
        (Publish(UP, b"x" * 200_000), Reason.PACKET_TOO_LARGE),
        (Publish(UP, qos=2, packet_id=1), Reason.QOS_NOT_SUPPORTED),
        (Publish("a/" * 8 + "a"), Reason.TOPIC_NAME_INVALID),
        (Publish("x" * 257), Reason.TOPIC_NAME_INVALID),
        (Publish(UP, properties=Properties(subscription_identifier=1)), Reason.PROTOCOL_ERROR),
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


def test_128_kilobytes_are_not_too_far(served: Served) -> None:
    with backend(served) as home, client(served, "lamp") as lamp:
        home.subscribe(UP)
        lamp.publish(UP, b"x" * 128 * 1024)
        assert len(home.expect(Publish).payload) == 128 * 1024


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


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


def test_a_second_connection_ends_the_first(served: Served) -> None:
    with served.heard("$aws/events/presence/+/lamp") as events, client(served, "lamp", MQTT_5) as first:
        event(events, "connected")
        with client(served, "lamp") as second:
            assert ended(first) == Reason.SESSION_TAKEN_OVER
            assert event(events, "disconnected")["disconnectReason"] == "DUPLICATE_CLIENTID"
            event(events, "connected")
            served.broker.send_direct_message("lamp", DOWN, b"for the second")
            assert second.expect(Publish).payload == b"for the second"


def test_lifecycle_events_have_iot_cores_fields(served: Served) -> None:
    with served.heard("$aws/events/presence/+/lamp") as events:
        with client(served, "lamp") as lamp:
            came = event(events, "connected")
            lamp.send(Disconnect())
            went = event(events, "disconnected")
        with client(served, "lamp"):
            again = event(events, "connected")
    shared = {"clientId", "timestamp", "eventType", "sessionIdentifier", "principalIdentifier", "versionNumber"}
    assert set(came) == shared | {"ipAddress"}
    assert set(went) == shared | {"clientInitiatedDisconnect", "disconnectReason"}
    assert (came["eventType"], went["eventType"], came["ipAddress"]) == ("connected", "disconnected", "127.0.0.1")
    assert (went["clientInitiatedDisconnect"], went["disconnectReason"]) == (True, "CLIENT_INITIATED_DISCONNECT")
    assert went["sessionIdentifier"] == came["sessionIdentifier"] != again["sessionIdentifier"]
    assert went["versionNumber"] == came["versionNumber"]
    assert isinstance(came["versionNumber"], int)
    assert again["versionNumber"] == came["versionNumber"] + 1


@pytest.mark.parametrize("level", [MQTT_3, MQTT_5])
def test_who_is_silent_for_too_long_is_disconnected(quick: Served, level: int) -> None:
    with quick.heard("$aws/events/presence/+/lamp") as events, client(quick, "lamp", level, keepalive=1) as lamp:
        event(events, "connected")
        assert ended(lamp) == (Reason.KEEP_ALIVE_TIMEOUT if level == MQTT_5 else None)
        assert event(events, "disconnected")["disconnectReason"] == "MQTT_KEEP_ALIVE_TIMEOUT"


def test_who_never_says_who_it_is_is_disconnected(quick: Served) -> None:
    with Wire(quick.port) as wire:
        wire.socket.sendall(encode(Connect("lamp"), MQTT_3)[:-1])
        assert wire.receive() is None


def test_a_will_is_published_for_who_is_lost_and_not_for_who_leaves(served: Served) -> None:
    will = Will(UP, b"gone")
    with served.heard(UP) as heard:
        with client(served, "lamp", will=will) as lamp:
            lamp.send(Disconnect())
            assert lamp.receive() is None
        client(served, "lamp", will=will).socket.close()
        assert heard.get(timeout=SECONDS).payload == b"gone"
        with client(served, "lamp", MQTT_5, will=will) as lamp:
            lamp.send(Disconnect(Reason.DISCONNECT_WITH_WILL))
            assert heard.get(timeout=SECONDS).payload == b"gone"
        assert heard.empty()
    with Wire(served.port) as wire:
        assert wire.connect("lamp", will=Will("devices/fan/up", b"")).reason == 5


def test_a_session_keeps_what_comes_while_its_client_is_away(served: Served) -> None:
    with backend(served) as home:
        with client(served, "sleeper", clean=False) as sleeper:
            sleeper.subscribe("devices/sleeper/down", qos=1)
            home.publish("devices/sleeper/down", b"unacknowledged", qos=1, packet_id=1)
            assert sleeper.expect(Publish).payload == b"unacknowledged"
        home.expect(Puback)
        for number, qos in ((2, 1), (0, 0), (3, 1)):
            home.publish("devices/sleeper/down", str(number).encode(), qos=qos, packet_id=number)
        home.settle()
        with Wire(served.port) as again:
            assert again.connect("sleeper", clean=False).session_present
            arrived = [again.expect(Publish) for _ in range(3)]
            assert [message.payload for message in arrived] == [b"unacknowledged", b"2", b"3"]
            again.send(*(Puback(message.packet_id) for message in arrived))
            again.settle()
        with Wire(served.port) as fresh:
            assert not fresh.connect("sleeper", clean=True).session_present
        with Wire(served.port) as after:
            assert not after.connect("sleeper", clean=False).session_present


def test_a_session_ends_when_nobody_comes_back_for_it(quick: Served) -> None:
    with quick.heard("$aws/events/presence/disconnected/sleeper") as gone:
        client(quick, "sleeper", MQTT_5, properties=Properties(session_expiry=60)).socket.close()
        gone.get(timeout=SECONDS)
    with Wire(quick.port) as wire:
        assert wire.connect("sleeper", clean=False).session_present
    with client(quick, "lamp") as lamp:
        deadline = time.monotonic() + SECONDS
        while quick.broker.broker.subscriptions("sleeper") is not None:
            assert time.monotonic() < deadline
            lamp.settle()


def test_a_message_that_waits_for_too_long_is_not_sent(quick: Served) -> None:
    with backend(quick) as home, client(quick, "lamp", MQTT_5, properties=Properties(receive_maximum=1)) as lamp:
        lamp.subscribe(DOWN, qos=1)
        home.publish(DOWN, b"1", qos=1, packet_id=1)
        home.publish(DOWN, b"2", qos=1, packet_id=2, properties=Properties(message_expiry=1))
        home.publish(DOWN, b"3", qos=1, packet_id=3)
        first = lamp.expect(Publish)
        deadline = time.monotonic() + 1.1
        while time.monotonic() < deadline:
            assert lamp.settle() == []  # one at a time was asked for
        lamp.send(Puback(first.packet_id))
        assert lamp.expect(Publish).payload == b"3"
        assert quick.broker.broker.counts.expired == 1


def test_what_is_left_of_a_messages_life_is_said(served: Served) -> None:
    with backend(served) as home:
        home.publish(UP, b"x", retain=True, properties=Properties(message_expiry=2**32 - 1))
        home.subscribe(UP)
        message = home.expect(Publish)
        assert message.properties
        assert message.properties.message_expiry in (604_799, 604_800)
        home.publish(UP, b"", retain=True)
        home.settle()


def test_a_client_that_publishes_too_often_is_heard_a_hundred_times_a_second(served: Served) -> None:
    with served.heard(UP) as heard, client(served, "lamp", MQTT_5) as lamp:
        before = served.broker.broker.counts.dropped_rate
        lamp.send(*(Publish(UP, qos=1, packet_id=number) for number in range(1, 301)))
        said = [lamp.expect(Puback).reason for _ in range(300)]
        assert said[:100] == [0] * 100
        assert said.count(Reason.QUOTA_EXCEEDED) == served.broker.broker.counts.dropped_rate - before > 150
        assert heard.qsize() == said.count(0)


def test_a_client_that_does_not_read_hurts_nobody_but_itself() -> None:
    payload = b"x" * 100_000
    with (
        running_broker(Limits(publishes_per_second=None)) as served,
        client(served, "deaf") as deaf,
        client(served, "lamp") as lamp,
        backend(served) as home,
    ):
        deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        deaf.subscribe("devices/deaf/down", qos=1)
        lamp.subscribe(DOWN)
        for number in range(1, 151):
            qos = number % 2
            home.publish("devices/deaf/down", payload, qos=qos, packet_id=number if qos else 0)
            if qos:
                home.expect(Puback)
            home.publish(DOWN, b"tick")
            assert lamp.expect(Publish).payload == b"tick"
        assert served.broker.broker.counts.dropped_slow > 0
        promised = 75
        while promised:  # what was sent at QoS 1 comes, once the client reads
            message = deaf.expect(Publish)
            if message.qos:
                promised -= 1
                deaf.send(Puback(message.packet_id))


def test_what_waits_behind_messages_that_may_be_lost_comes_once_the_client_reads() -> None:
    with (
        running_broker(Limits(publishes_per_second=None)) as served,
        client(served, "deaf") as deaf,
        backend(served) as home,
    ):
        deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        deaf.subscribe("devices/deaf/down", qos=1)
        while not served.broker.broker.counts.dropped_slow:
            home.publish("devices/deaf/down", b"x" * 100_000)
            home.settle()
        home.publish("devices/deaf/down", b"kept", qos=1, packet_id=1)
        home.expect(Puback)
        while (message := deaf.expect(Publish)).qos == 0:
            continue
        assert message.payload == b"kept"


def test_a_client_that_asks_without_end_and_never_reads_fills_no_memory() -> None:
    limits = Limits(outbound_bytes=65_536)
    with running_broker(limits) as served, client(served, "lamp") as lamp:
        asker = client(served, "asker")
        transports = [each.transport for each in served.broker.broker._open]
        for transport in transports:  # so that not the system holds what the client does not read
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        asker.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        asker.socket.settimeout(0.5)
        with asker.socket:
            with contextlib.suppress(TimeoutError):  # where the broker takes no more
                for _ in range(20):
                    asker.socket.sendall(encode(Pingreq(), MQTT_3) * 16_384)
            deadline, most = time.monotonic() + SECONDS, 0
            while time.monotonic() < deadline - SECONDS + 1 or most < limits.outbound_bytes // 2:
                assert time.monotonic() < deadline
                assert lamp.settle() == []
                most = max(most, *(transport.get_write_buffer_size() for transport in transports))
            assert most < 2 * limits.outbound_bytes


def test_when_the_broker_ends_its_clients_are_told() -> None:
    with running_broker() as served:
        lamp = client(served, "lamp", MQTT_5)
    with lamp:
        assert ended(lamp) == Reason.SERVER_SHUTTING_DOWN


def test_too_many_connections_are_not_taken() -> None:
    with running_broker(Limits(connections=2)) as served, client(served, "one"), client(served, "two") as two:
        with Wire(served.port) as three:
            assert three.receive() is None
        assert two.settle() == []


def test_too_many_who_have_not_said_who_they_are_keep_out_further_ones_alone() -> None:
    with running_broker(Limits(strangers=2)) as served, client(served, "lamp") as lamp:
        with Wire(served.port), Wire(served.port), Wire(served.port) as third:
            assert third.receive() is None
            assert lamp.settle() == []
        with client(served, "fan"):
            assert lamp.settle() == []


@pytest.mark.parametrize(("level", "code"), [(MQTT_3, 3), (MQTT_5, Reason.SERVER_UNAVAILABLE)])
def test_a_registry_that_does_not_answer_is_said(level: int, code: int) -> None:
    async def unavailable(_: Client) -> bool:
        raise Unavailable

    with running_broker(admits=unavailable) as served, Wire(served.port, level) as wire:
        assert wire.connect("lamp").reason == code
        assert wire.receive() is None


def test_a_registry_that_takes_too_long_is_not_waited_for() -> None:
    async def slow(client: Client) -> bool:
        await asyncio.sleep(60 if client.client_id == "lamp" else 0)
        return True

    limits = Limits(connect_seconds=0.2)
    with running_broker(limits, admits=slow) as served, Wire(served.port) as lamp, client(served, "fan") as fan:
        lamp.send(Connect("lamp"))
        assert fan.settle() == []
        assert lamp.receive() is None


def test_a_ping_is_answered(served: Served) -> None:
    with client(served, "lamp") as lamp:
        lamp.send(Pingreq(), Pingreq())
        assert [lamp.receive(), lamp.receive()] == [Pingresp(), Pingresp()]


def test_the_token_is_the_backends_alone(served: Served) -> None:
    with Wire(served.port) as wire:
        assert wire.connect("lamp", user_name="kho", password=TOKEN.encode()).reason == 0
        wire.publish("devices/fan/down")
        assert wire.receive() is None
