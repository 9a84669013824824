"""The embedded broker, as its tests meet it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.mqtt import running_broker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.mqtt import Served


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A broker with IoT Core's limits, and as much time to connect as a test takes."""
    with running_broker() as running:
        yield running
