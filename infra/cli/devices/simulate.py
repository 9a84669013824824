"""`kho devices simulate`: a fleet to try things on."""

from __future__ import annotations

import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter
from cyclopts.validators import Number

from infra.cli.devices.broker import host_and_port
from infra.cli.target import exit_with_error
from infra.local.data_folder import running_server
from infra.local.simulator.device import DeviceModel
from infra.local.simulator.fleet import Fleet
from infra.local.simulator.quirks import FIRMWARE, Quirk

_REPORT_SECONDS: Final = 5.0
_DEFAULT_BROKER: Final = "mqtt://127.0.0.1:1883"


@Parameter(name="*", negative=())
@dataclass(frozen=True, slots=True)
class FleetOptions:
    """How many devices, and of what kind.

    Parameters
    ----------
    number
        How many devices.
    prefix
        How their ids begin; a number follows.
    quirk
        One more thing that is odd about them; may be given several times.
    plain
        Leave out what is odd about the firmware: devices do what the protocol's description says.
    reconnect
        After how many seconds they come back once they are lost: the shortest and the longest.
    keepalive
        After how many seconds of silence they show that they are alive.
    user
        Their user name; without, each one's id, where there is a password.
    password
        Their password.
    """

    number: Annotated[int, Parameter(name=("--number", "-n"), validator=Number(gte=1, lte=20_000))] = 1
    prefix: str = "sim-"
    quirk: tuple[Quirk, ...] = ()
    plain: bool = False
    reconnect: tuple[float, float] = (10.0, 60.0)
    keepalive: int = 240
    user: str = ""
    password: str = ""

    def model(self) -> DeviceModel:
        """The model of each device."""
        return DeviceModel(
            quirks=frozenset(self.quirk) | (frozenset() if self.plain else FIRMWARE),
            reconnect_seconds=self.reconnect,
            keepalive=self.keepalive,
            user_name=self.user or None,
            password=self.password.encode("utf-8") or None,
        )

    def ids(self) -> list[str]:
        """The id of each device."""
        return [f"{self.prefix}{number}" for number in range(1, self.number + 1)]


_ONE: Final = FleetOptions()


def simulate(fleet: FleetOptions = _ONE, *, mqtt_url: str = "", data: Path = Path(".kho")) -> None:
    """Simulate devices until Ctrl-C: each connects, answers calls, and comes back after it was lost.

    Parameters
    ----------
    mqtt_url
        The broker, such as mqtt://127.0.0.1:1883; by default that of the 'kho serve' that uses the data folder.
    data
        The data folder of 'kho serve'.
    """
    running_here = None if mqtt_url else running_server(data)
    host, port = host_and_port(running_here["mqtt_url"] if running_here else mqtt_url or _DEFAULT_BROKER)
    # A shell that starts a command in the background has it ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    pause = threading.Event()
    with Fleet(host, port, fleet.ids(), fleet.model()) as running:
        try:
            running.start()
            if not running.connected:
                exit_with_error(
                    f"no device is let in at {host}, port {port}. Is 'kho serve' running, and does it know the devices?"
                )
            print(f"{running.connected} of {fleet.number} devices are connected to {host}, port {port}.")
            print("Ctrl-C ends them.", flush=True)
            while not pause.wait(_REPORT_SECONDS):
                _report(running)
        except KeyboardInterrupt:
            _report(running)


def _report(running: Fleet) -> None:
    tallies = [device.tally for device in running.devices]
    received, sent = sum(tally.received for tally in tallies), sum(tally.sent for tally in tallies)
    runs = sum(len(device.firmware.runs) for device in running.devices)
    print(f"{running.connected} connected; {received} messages received, {runs} calls run, {sent} sent", flush=True)
