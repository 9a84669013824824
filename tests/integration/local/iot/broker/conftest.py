"""The embedded broker for its tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.helpers.mqtt_client import running_broker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.helpers.mqtt_client import EmbeddedBroker


@pytest.fixture(scope="module")
def served() -> Iterator[EmbeddedBroker]:
    """Yield a broker with IoT Core's limits, and as much time to connect as a test takes."""
    with running_broker() as running:
        yield running
