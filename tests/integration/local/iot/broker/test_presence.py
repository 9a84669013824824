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
from tests.helpers.wait import CEILING_SECONDS


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


def test_session_ends_with_its_connection(served: EmbeddedBroker) -> None:
    """MQTT 5 clients read in the CONNACK that no session is kept."""
    with backend(served) as home:
        for level, keeping in ((MQTT_3, None), (MQTT_5, Properties(session_expiry=3600))):
            with RawMqttClient(served.port, level) as sleeper:
                granted = sleeper.connect("sleeper", clean=False, properties=keeping).properties
                assert granted is None if level == MQTT_3 else granted and granted.session_expiry == 0
                assert sleeper.subscribe("devices/sleeper/down", qos=1) == [0]
            home.publish("devices/sleeper/down", b"x", qos=1, packet_id=1)
            assert home.expect(Puback).reason == ReasonCode.NO_MATCHING_SUBSCRIBERS
            with client(served, "sleeper", level, clean=False) as again:
                assert again.settle() == []


def test_broker_shutdown_disconnects_clients_with_reason() -> None:
    with running_broker() as served:
        lamp = client(served, "lamp", MQTT_5)
    with lamp:
        assert disconnect_reason(lamp) == ReasonCode.SERVER_SHUTTING_DOWN
