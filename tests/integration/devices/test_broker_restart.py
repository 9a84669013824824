"""Calls during the death of a broker end in time, and later calls arrive."""

from __future__ import annotations

import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.iot.simulator.device import DeviceModel
from infra.local.iot.simulator.fleet import Fleet
from infra.local.iot.simulator.quirks import FIRMWARE
from shared.devices.mqtt.client_factory import device_client
from shared.devices.registry import registry
from shared.rpc.errors import KhoError, OutOfTime, Unavailable
from tests.helpers.device_backend import TIMEOUT_MS, reset_settings
from tests.helpers.patience import be_patient
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator

ECHO, SLEEP = "self.test.echo", "self.test.sleep"


@pytest.fixture
def killable(monkeypatch: pytest.MonkeyPatch) -> Iterator[Killable]:
    with _free_ports() as (mqtt_port, plane_port):
        broker = Killable(mqtt_port, plane_port)
    be_patient(monkeypatch)
    monkeypatch.setenv("KHO_MQTT_URL", f"mqtt://127.0.0.1:{mqtt_port}")
    monkeypatch.setenv("KHO_MQTT_TOKEN", "word")
    monkeypatch.setenv("AWS_ENDPOINT_URL_IOT_DATA_PLANE", f"http://127.0.0.1:{plane_port}/word")
    reset_settings()
    broker.start()
    yield broker
    broker.kill()
    reset_settings()


class Killable:
    """A broker in its own process."""

    def __init__(self, mqtt_port: int, plane_port: int) -> None:
        self.mqtt_port = mqtt_port
        self._command = [sys.executable, "-m", "tests.helpers.broker_process", str(mqtt_port), str(plane_port), "word"]

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


def test_broker_killed_and_restarted_during_a_call(killable: Killable) -> None:

    model = DeviceModel(FIRMWARE, reconnect_seconds=(0.1, 0.2), connect_seconds=CEILING_SECONDS)
    exchange = device_client().rpc
    clock = exchange.clock
    with Fleet("127.0.0.1", killable.mqtt_port, ["survivor"], model) as fleet, ThreadPoolExecutor() as caller:
        fleet.start()
        device = registry().find_or_register("survivor")
        assert device

        def call(name: str, timeout_ms: int, **arguments: Any) -> Any:
            try:
                return device_client().call(device, name, arguments, timeout_ms).content[0]["text"]
            except KhoError as error:
                return error

        assert call(ECHO, TIMEOUT_MS, text="before") == "before"
        under_way = caller.submit(call, SLEEP, TIMEOUT_MS, milliseconds=60_000)
        until(lambda: fleet.devices[0].counters.received == 8)
        killable.kill()
        until(lambda: fleet.connected == 0)
        down = call(ECHO, 1_000, text="while it is down")  # it waits so long for a broker
        assert isinstance(down, Unavailable), down
        assert "nothing was sent" in down.message
        fleet.do(fleet.devices[0].finish)  # it answers while the broker is down
        killable.start()
        exchange.clock = lambda: clock() + CEILING_SECONDS
        lost = under_way.result()
        exchange.clock = clock
        assert isinstance(lost, OutOfTime), lost
        assert (lost.code, lost.details["sent"]) == ("DEVICE_TIMEOUT", True)
        until(lambda: fleet.connected == 1)
        until(lambda: call(ECHO, TIMEOUT_MS, text="after") == "after")
        sent = [arguments.get("text") for _, arguments in fleet.devices[0].firmware.runs]
        assert sent.count("while it is down") == 0
        assert sent.count("before") == sent.count("after") == 1
