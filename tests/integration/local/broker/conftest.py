"""The embedded broker, as its tests meet it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.helpers.mqtt_client import running_broker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.helpers.mqtt_client import EmbeddedBroker


@pytest.fixture(scope="module")
def served() -> Iterator[EmbeddedBroker]:
    """A broker with IoT Core's limits, and as much time to connect as a test takes."""
    with running_broker() as running:
        yield running
