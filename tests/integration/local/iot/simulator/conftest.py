"""Simulated devices with their own broker."""

from __future__ import annotations

import queue
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.iot.simulator.device import DeviceModel
from infra.local.iot.simulator.fleet import Fleet
from infra.local.iot.simulator.quirks import FIRMWARE, Quirk
from tests.helpers.device_conversation import DeviceConversation
from tests.helpers.mqtt_client import EmbeddedBroker, running_broker
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from infra.local.iot.broker.messages import BrokerMessage


@pytest.fixture(scope="module")
def served() -> Iterator[EmbeddedBroker]:
    """Yield a running broker."""
    with running_broker() as running:
        yield running


@pytest.fixture
def talk(served: EmbeddedBroker) -> Callable[..., Any]:
    """Return a function that begins a conversation with a device that has these quirks."""

    @contextmanager
    def begin(*quirks: Quirk, plain: bool = False, **about: Any) -> Iterator[DeviceConversation]:
        options: dict[str, Any] = {
            "reconnect_seconds": (0.05, 0.1),
            "connect_seconds": CEILING_SECONDS,
            "hello_seconds": 10 * CEILING_SECONDS,
        }
        model = DeviceModel(frozenset(quirks) | (frozenset() if plain else FIRMWARE), **(options | about))
        heard: queue.Queue[BrokerMessage] = queue.Queue()
        stop = served.broker.listen("devices/sim/up", heard.put)
        try:
            with Fleet("127.0.0.1", served.port, ["sim"], model) as fleet:
                fleet.start()
                yield DeviceConversation(served, fleet, heard)
        finally:
            stop()
            until(lambda: not is_connected())  # so that the next conversation does not see its end

    def is_connected() -> bool:
        visit = served.broker.call(lambda broker: broker.presence.find("sim"))
        return visit is not None and visit.reason is None

    return begin
