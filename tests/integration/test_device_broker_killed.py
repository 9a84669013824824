"""A broker that is killed during calls to devices: each call ends in time, and those after it arrive."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from device_server.talking import talks
from infra.local.simulator.device import Model
from infra.local.simulator.fleet import Fleet
from infra.local.simulator.quirks import FIRMWARE
from shared.devices.registry import registry
from shared.rpc.errors import KhoError, OutOfTime, Unavailable
from tests.devices import forget
from tests.helpers.wait import until

if TYPE_CHECKING:
    from collections.abc import Iterator

ECHO, SLEEP = "self.test.echo", "self.test.sleep"


@pytest.fixture
def killable(monkeypatch: pytest.MonkeyPatch) -> Iterator[Killable]:
    with _free_ports() as (mqtt_port, plane_port):
        broker = Killable(mqtt_port, plane_port)
    monkeypatch.setenv("KHO_MQTT_URL", f"mqtt://127.0.0.1:{mqtt_port}")
    monkeypatch.setenv("KHO_MQTT_TOKEN", "word")
    monkeypatch.setenv("AWS_ENDPOINT_URL_IOT_DATA_PLANE", f"http://127.0.0.1:{plane_port}/word")
    forget()
    broker.start()
    yield broker
    broker.kill()
    forget()


class Killable:
    """A broker in a process of its own."""

    def __init__(self, mqtt_port: int, plane_port: int) -> None:
        self.mqtt_port = mqtt_port
        self._command = [sys.executable, "-m", "tests.broker_process", str(mqtt_port), str(plane_port), "word"]

    def start(self) -> None:
        """Start, and wait until it listens."""
        self.process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        assert self.process.stdout.readline() == "ready\n"

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()
        self.process.communicate()


@contextmanager
def _free_ports() -> Iterator[tuple[int, int]]:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        yield one.getsockname()[1], other.getsockname()[1]


def test_a_broker_that_is_killed_and_started_again_during_a_call(killable: Killable) -> None:

    model = Model(FIRMWARE, reconnect_seconds=(0.1, 0.2))
    with Fleet("127.0.0.1", killable.mqtt_port, ["survivor"], model) as fleet, ThreadPoolExecutor() as caller:
        fleet.start()
        device = registry().appear("survivor")
        assert device

        def call(name: str, timeout_ms: int, **arguments: Any) -> Any:
            try:
                return talks().call(device, name, arguments, timeout_ms).content[0]["text"]
            except KhoError as error:
                return error

        assert call(ECHO, 5_000, text="before") == "before"
        started = time.monotonic()
        under_way = caller.submit(call, SLEEP, 3_000, milliseconds=1_000)
        until(lambda: fleet.devices[0].tally.received == 8)
        heard = time.monotonic()
        killable.kill()
        down = call(ECHO, 5_000, text="while it is down")
        assert isinstance(down, Unavailable), down
        assert "nothing was sent" in down.message
        # The device answers while there is no broker; one that is back sooner may bring its answer.
        until(lambda: time.monotonic() - heard > 1.5)
        killable.start()
        lost = under_way.result()
        assert isinstance(lost, OutOfTime), lost
        assert (lost.name, lost.details["sent"]) == ("DEVICE_TIMEOUT", True)
        assert time.monotonic() - started < 12
        until(lambda: fleet.connected == 1)
        until(lambda: call(ECHO, 1_000, text="after") == "after")
        sent = [arguments.get("text") for _, arguments in fleet.devices[0].firmware.runs]
        assert sent.count("while it is down") == 0
        assert sent.count("before") == sent.count("after") == 1
