"""The embedded broker, as its tests meet it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from infra.local.broker.limits import Limits
from tests.mqtt import running_broker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.mqtt import Served

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
