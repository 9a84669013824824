"""`kho devices simulate`: a simulated fleet."""

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
    """The size and the kind of a simulated fleet.

    Parameters
    ----------
    number
        The number of devices.
    prefix
        The prefix of their ids; a number follows.
    quirk
        An additional quirk; may be given several times.
    plain
        Leave out the firmware's quirks: devices follow the protocol description.
    reconnect
        The shortest and the longest delay before a reconnect, in seconds.
    keepalive
        The MQTT keepalive, in seconds.
    user
        Their user name; by default each device's id, if there is a password.
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
        """Return the model shared by the devices."""
        return DeviceModel(
            quirks=frozenset(self.quirk) | (frozenset() if self.plain else FIRMWARE),
            reconnect_seconds=self.reconnect,
            keepalive=self.keepalive,
            user_name=self.user or None,
            password=self.password.encode("utf-8") or None,
        )

    def ids(self) -> list[str]:
        """Return the devices' ids."""
        return [f"{self.prefix}{number}" for number in range(1, self.number + 1)]


_DEFAULT_FLEET: Final = FleetOptions()


def simulate(fleet: FleetOptions = _DEFAULT_FLEET, *, mqtt_url: str = "", data: Path = Path(".kho")) -> None:
    """Simulate devices until Ctrl-C: each connects, answers calls, and reconnects after a loss.

    Parameters
    ----------
    mqtt_url
        The broker, such as mqtt://127.0.0.1:1883; by default that of the 'kho serve' that uses the data folder.
    data
        The data folder of 'kho serve'.
    """
    server = None if mqtt_url else running_server(data)
    host, port = host_and_port(server["mqtt_url"] if server else mqtt_url or _DEFAULT_BROKER)
    # A shell starts background commands with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    pause = threading.Event()
    with Fleet(host, port, fleet.ids(), fleet.model()) as simulated:
        try:
            simulated.start()
            if not simulated.connected:
                exit_with_error(
                    f"no device could connect to {host}, port {port}. "
                    "Is 'kho serve' running, and are the devices registered?"
                )
            print(f"{simulated.connected} of {fleet.number} devices are connected to {host}, port {port}.")
            print("Press Ctrl-C to stop.", flush=True)
            while not pause.wait(_REPORT_SECONDS):
                _report(simulated)
        except KeyboardInterrupt:
            _report(simulated)


def _report(fleet: Fleet) -> None:
    counters = [device.counters for device in fleet.devices]
    received, sent = sum(each.received for each in counters), sum(each.sent for each in counters)
    runs = sum(len(device.firmware.runs) for device in fleet.devices)
    print(f"{fleet.connected} connected; {received} messages received, {runs} calls run, {sent} sent", flush=True)
