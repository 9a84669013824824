"""Permissions to connect, publish and subscribe."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from infra.local.iot.broker.limits import Limits
from infra.local.iot.mqtt.packets import (
    MQTT_3,
    MQTT_5,
    Connect,
)
from infra.local.iot.mqtt.reason_codes import ReasonCode
from shared.rpc.errors import Unavailable
from tests.helpers.mqtt_client import (
    DOWN,
    TOKEN,
    UP,
    EmbeddedBroker,
    RawMqttClient,
    backend,
    client,
    disconnect_reason,
    next_lifecycle_event,
    running_broker,
)
from tests.helpers.wait import until

if TYPE_CHECKING:
    from infra.local.iot.broker.authorization import ClientIdentity


@pytest.mark.parametrize("level", [MQTT_3, MQTT_5])
@pytest.mark.parametrize("topic", [DOWN, "devices/fan/up", "devices/lamp/up/more", "other", "$aws/events/x"])
def test_publish_to_foreign_topic_disconnects(served: EmbeddedBroker, level: int, topic: str) -> None:
    with served.heard("$aws/events/presence/+/lamp") as events, served.heard(topic) as there:
        with client(served, "lamp", level) as lamp:
            lamp.publish(topic, b"x")
            assert disconnect_reason(lamp) == (ReasonCode.NOT_AUTHORIZED if level == MQTT_5 else None)
        next_lifecycle_event(events, "connected")
        assert next_lifecycle_event(events, "disconnected")["disconnectReason"] == "AUTH_ERROR"
        assert there.empty()


def test_subscription_to_foreign_topic_is_denied(served: EmbeddedBroker) -> None:
    filters = ("devices/fan/down", "devices/+/down", "devices/#", "#", "$aws/events/#", UP)
    with client(served, "lamp") as old, client(served, "fan", MQTT_5) as new, backend(served) as home:
        assert old.subscribe(*filters) == [0x80] * 6
        assert new.subscribe("devices/lamp/down", "#", "devices/fan/down") == [0x87, 0x87, 0]
        home.publish(DOWN)
        home.settle()
        assert (old.settle(), new.settle()) == ([], [])


@pytest.mark.parametrize(("level", "code"), [(MQTT_3, 5), (MQTT_5, ReasonCode.NOT_AUTHORIZED)])
@pytest.mark.parametrize("client_id", ["+", "#", "a/b", "$aws", "kho-backend-x"])
def test_unauthorized_client_gets_reason_code(served: EmbeddedBroker, level: int, code: int, client_id: str) -> None:
    with RawMqttClient(served.port, level) as wire:
        assert wire.connect(client_id, user_name="kho", password=b"guessed").reason == code
        assert wire.receive() is None


@pytest.mark.parametrize(("level", "code"), [(MQTT_3, 3), (MQTT_5, ReasonCode.SERVER_UNAVAILABLE)])
def test_unavailable_registry_is_reported(level: int, code: int) -> None:
    async def unavailable(_: ClientIdentity) -> bool:
        raise Unavailable

    with running_broker(admits=unavailable) as served, RawMqttClient(served.port, level) as wire:
        assert wire.connect("lamp").reason == code
        assert wire.receive() is None


async def never_for_the_lamp(client: ClientIdentity) -> bool:
    """Admit every client but the lamp, for which the registry never answers."""
    if client.client_id == "lamp":
        await asyncio.Event().wait()
    return True


def test_slow_registry_lookup_delays_no_other_client() -> None:
    with running_broker(admits=never_for_the_lamp) as served, RawMqttClient(served.port) as lamp:
        lamp.send(Connect("lamp"))
        until(lambda: any(each.client.client_id == "lamp" for each in list(served.broker.broker._open_connections)))
        with client(served, "fan") as fan:
            assert fan.settle() == []
        lamp.socket.close()  # the broker reads nothing more before the registry answers


def test_slow_registry_times_out() -> None:
    limits = Limits(connect_seconds=0.2)
    with running_broker(limits, admits=never_for_the_lamp) as served, RawMqttClient(served.port) as lamp:
        lamp.send(Connect("lamp"))
        assert lamp.receive() is None


def test_backend_token_grants_only_the_backend(served: EmbeddedBroker) -> None:
    with RawMqttClient(served.port) as wire:
        assert wire.connect("lamp", user_name="kho", password=TOKEN.encode()).reason == 0
        wire.publish("devices/fan/down")
        assert wire.receive() is None
