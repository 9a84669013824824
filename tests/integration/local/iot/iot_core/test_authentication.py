"""Authentication of devices."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from infra.local.iot.iot_core import EmbeddedIotCore, run_embedded
from infra.local.iot.mqtt.packets import MQTT_5
from infra.local.iot.mqtt.reason_codes import ReasonCode
from infra.local.sockets import listen
from shared.devices.registry import registry
from tests.helpers.mqtt_client import PATIENT, EmbeddedBroker, RawMqttClient, client

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def guarded() -> Iterator[EmbeddedIotCore]:
    """Yield an IoT Core that requires keys."""
    with run_embedded(listen("127.0.0.1", 0), PATIENT, authorizing=True) as core:
        yield core


@pytest.mark.parametrize(("level", "refused"), [(4, 5), (MQTT_5, ReasonCode.NOT_AUTHORIZED)])
def test_device_authenticates_by_password_when_keys_are_required(
    guarded: EmbeddedIotCore, tenant: str, level: int, refused: int
) -> None:
    port = int(guarded.mqtt_url.rpartition(":")[2])
    lamp, password = f"lamp-{uuid4().hex}", b""

    def says(user_name: str | None, given: bytes | None, client_id: str = lamp) -> int:
        with RawMqttClient(port, level) as wire:
            return wire.connect(client_id, user_name=user_name, password=given).reason

    assert says(lamp, b"x") == says(None, None) == refused
    password = registry().register(tenant, lamp)[1].encode()
    assert says(lamp, password) == 0
    assert says(lamp, password[:-1]) == says("other", password) == says(lamp, None) == refused
    assert says("other", password, "other") == says(lamp, password, "other") == refused
    registry().revoke(lamp)
    assert says(lamp, password) == refused
    assert says("kho", guarded.token.encode(), "kho-backend-1") == 0


def test_open_mode_registers_any_client_unless_revoked(core: EmbeddedIotCore, served: EmbeddedBroker) -> None:
    lamp = f"lamp {uuid4().hex}"
    with client(served, lamp):
        assert registry().find("local", lamp)
    registry().revoke(lamp)
    with RawMqttClient(served.port) as wire:
        assert wire.connect(lamp).reason == 5
