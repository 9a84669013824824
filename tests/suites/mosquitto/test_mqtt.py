"""mosquitto passes the embedded broker's tests of MQTT."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.integration.local.iot.broker.test_mqtt import *  # noqa: F403 - each of them is run here too


@dataclass(frozen=True, slots=True)
class Mosquitto:
    """Return the broker's port."""

    port: int


@pytest.fixture
def served(port: int) -> Mosquitto:
    """mosquitto in the place of the embedded broker."""
    return Mosquitto(port)
