"""Connections and disconnections: lifecycle events, wills, sessions, and silence."""

from __future__ import annotations

import pytest

from infra.local.iot.broker.limits import Limits
from infra.local.iot.mqtt.encoding import encode
from infra.local.iot.mqtt.packets import (
    MQTT_3,
    MQTT_5,
    Connect,
    Disconnect,
    Puback,
    Publish,
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
    send_direct_message,
)
from tests.helpers.wait import CEILING_SECONDS, until


def test_second_connection_takes_over_the_client_id(served: EmbeddedBroker) -> None:
    with served.heard("$aws/events/presence/+/lamp") as events, client(served, "lamp", MQTT_5) as first:
        next_lifecycle_event(events, "connected")
        with client(served, "lamp") as second:
            assert disconnect_reason(first) == ReasonCode.SESSION_TAKEN_OVER
            assert next_lifecycle_event(events, "disconnected")["disconnectReason"] == "DUPLICATE_CLIENTID"
            next_lifecycle_event(events, "connected")
            send_direct_message(served.broker, "lamp", DOWN, b"for the second")
            assert second.expect(Publish).payload == b"for the second"


def test_lifecycle_events_have_iot_cores_fields(served: EmbeddedBroker) -> None:
    with served.heard("$aws/events/presence/+/lamp") as events:
        with client(served, "lamp") as lamp:
            came = next_lifecycle_event(events, "connected")
            lamp.send(Disconnect())
            went = next_lifecycle_event(events, "disconnected")
        with client(served, "lamp"):
            again = next_lifecycle_event(events, "connected")
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
def test_keepalive_timeout_disconnects(level: int) -> None:
    limits = Limits(keepalive_seconds=(1, 1200), connect_seconds=CEILING_SECONDS)
    with (
        running_broker(limits) as served,
        served.heard("$aws/events/presence/+/lamp") as events,
        client(served, "lamp", level, keepalive=1) as lamp,
    ):
        next_lifecycle_event(events, "connected")
        assert disconnect_reason(lamp) == (ReasonCode.KEEP_ALIVE_TIMEOUT if level == MQTT_5 else None)
        assert next_lifecycle_event(events, "disconnected")["disconnectReason"] == "MQTT_KEEP_ALIVE_TIMEOUT"


def test_connect_timeout_disconnects() -> None:
    with running_broker(Limits(connect_seconds=0.3)) as served, RawMqttClient(served.port) as wire:
        wire.socket.sendall(encode(Connect("lamp"), MQTT_3)[:-1])
        assert wire.receive() is None


def test_will_is_published_on_loss_but_not_on_disconnect(served: EmbeddedBroker) -> None:
    will = Will(UP, b"gone")
    with served.heard(UP) as heard:
        with client(served, "lamp", will=will) as lamp:
            lamp.send(Disconnect())
            assert lamp.receive() is None
        client(served, "lamp", will=will).socket.close()
        assert heard.get(timeout=CEILING_SECONDS).payload == b"gone"
        with client(served, "lamp", MQTT_5, will=will) as lamp:
            lamp.send(Disconnect(ReasonCode.DISCONNECT_WITH_WILL))
            assert heard.get(timeout=CEILING_SECONDS).payload == b"gone"
        assert heard.empty()
    with RawMqttClient(served.port) as wire:
        assert wire.connect("lamp", will=Will("devices/fan/up", b"")).reason == 5


def test_session_is_resumed_after_reconnect(served: EmbeddedBroker) -> None:
    with client(served, "sleeper", MQTT_5, properties=Properties(session_expiry=3600)):
        pass
    with RawMqttClient(served.port, MQTT_5) as wire:
        assert wire.connect("sleeper", clean=False).session_present


def test_session_expires() -> None:
    limits = Limits(session_seconds=1, connect_seconds=CEILING_SECONDS)
    with running_broker(limits) as served:
        with client(served, "sleeper", MQTT_5, properties=Properties(session_expiry=3600)):
            assert served.broker.broker.subscriptions("sleeper") == []
        until(lambda: served.broker.broker.subscriptions("sleeper") is None)
        with RawMqttClient(served.port, MQTT_5) as wire:
            assert not wire.connect("sleeper", clean=False).session_present


def test_expired_message_is_not_sent() -> None:
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
        assert lamp.settle() == []  # the receive maximum is one
        clock.advance(1)
        lamp.send(Puback(first.packet_id))
        assert lamp.expect(Publish).payload == b"3"
        assert served.broker.broker.counters.expired == 1


def test_broker_shutdown_disconnects_clients_with_reason() -> None:
    with running_broker() as served:
        lamp = client(served, "lamp", MQTT_5)
    with lamp:
        assert disconnect_reason(lamp) == ReasonCode.SERVER_SHUTTING_DOWN
