"""Clients come and go: lifecycle events, wills, sessions, and silence."""

from __future__ import annotations

import pytest

from infra.local.broker.limits import Limits
from infra.local.mqtt.encoding import encode
from infra.local.mqtt.packets import (
    MQTT_3,
    MQTT_5,
    Connect,
    Disconnect,
    Puback,
    Publish,
    Will,
)
from infra.local.mqtt.properties import Properties
from infra.local.mqtt.reasons import Reason
from tests.helpers.clock import Clock
from tests.helpers.wait import CEILING_SECONDS, until
from tests.mqtt import DOWN, UP, Served, Wire, backend, client, ended, event, running_broker


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
def test_who_is_silent_for_too_long_is_disconnected(level: int) -> None:
    limits = Limits(keepalive_seconds=(1, 1200), connect_seconds=CEILING_SECONDS)
    with (
        running_broker(limits) as served,
        served.heard("$aws/events/presence/+/lamp") as events,
        client(served, "lamp", level, keepalive=1) as lamp,
    ):
        event(events, "connected")
        assert ended(lamp) == (Reason.KEEP_ALIVE_TIMEOUT if level == MQTT_5 else None)
        assert event(events, "disconnected")["disconnectReason"] == "MQTT_KEEP_ALIVE_TIMEOUT"


def test_who_never_says_who_it_is_is_disconnected() -> None:
    with running_broker(Limits(connect_seconds=0.3)) as served, Wire(served.port) as wire:
        wire.socket.sendall(encode(Connect("lamp"), MQTT_3)[:-1])
        assert wire.receive() is None


def test_a_will_is_published_for_who_is_lost_and_not_for_who_leaves(served: Served) -> None:
    will = Will(UP, b"gone")
    with served.heard(UP) as heard:
        with client(served, "lamp", will=will) as lamp:
            lamp.send(Disconnect())
            assert lamp.receive() is None
        client(served, "lamp", will=will).socket.close()
        assert heard.get(timeout=CEILING_SECONDS).payload == b"gone"
        with client(served, "lamp", MQTT_5, will=will) as lamp:
            lamp.send(Disconnect(Reason.DISCONNECT_WITH_WILL))
            assert heard.get(timeout=CEILING_SECONDS).payload == b"gone"
        assert heard.empty()
    with Wire(served.port) as wire:
        assert wire.connect("lamp", will=Will("devices/fan/up", b"")).reason == 5


def test_a_session_is_kept_for_who_comes_back_for_it(served: Served) -> None:
    with client(served, "sleeper", MQTT_5, properties=Properties(session_expiry=3600)):
        pass
    with Wire(served.port, MQTT_5) as wire:
        assert wire.connect("sleeper", clean=False).session_present


def test_a_session_ends_when_nobody_comes_back_for_it() -> None:
    limits = Limits(session_seconds=1, connect_seconds=CEILING_SECONDS)
    with running_broker(limits) as served:
        with client(served, "sleeper", MQTT_5, properties=Properties(session_expiry=3600)):
            assert served.broker.broker.subscriptions("sleeper") == []
        until(lambda: served.broker.broker.subscriptions("sleeper") is None)
        with Wire(served.port, MQTT_5) as wire:
            assert not wire.connect("sleeper", clean=False).session_present


def test_a_message_that_waits_for_too_long_is_not_sent() -> None:
    clock = Clock()
    with (
        running_broker(clock=clock) as served,
        backend(served) as home,
        client(served, "lamp", MQTT_5, properties=Properties(receive_maximum=1)) as lamp,
    ):
        lamp.subscribe(DOWN, qos=1)
        home.publish(DOWN, b"1", qos=1, packet_id=1)
        home.publish(DOWN, b"2", qos=1, packet_id=2, properties=Properties(message_expiry=1))
        home.publish(DOWN, b"3", qos=1, packet_id=3)
        home.settle()
        first = lamp.expect(Publish)
        assert lamp.settle() == []  # one at a time was asked for
        clock.advance(1)
        lamp.send(Puback(first.packet_id))
        assert lamp.expect(Publish).payload == b"3"
        assert served.broker.broker.counts.expired == 1


def test_when_the_broker_ends_its_clients_are_told() -> None:
    with running_broker() as served:
        lamp = client(served, "lamp", MQTT_5)
    with lamp:
        assert ended(lamp) == Reason.SERVER_SHUTTING_DOWN
