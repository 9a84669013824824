"""`kho devices simulate`: a simulated fleet."""

import contextlib
import signal
import tempfile
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final
from uuid import uuid4

from cyclopts import Parameter
from cyclopts.validators import Number

from infra.clients.cli.devices.broker import host_and_port
from infra.clients.cli.target import exit_with_error
from infra.local.data_folder import DEFAULT_DATA, running_server
from infra.local.iot import simulator
from infra.local.iot.simulator.board_http import FirmwareHang
from infra.local.iot.simulator.camera import Camera
from infra.local.iot.simulator.device import DeviceAlert, DeviceModel
from infra.local.iot.simulator.flash import FirmwareAbort, Flash
from infra.local.iot.simulator.fleet import Fleet
from infra.local.iot.simulator.quirks import FIRMWARE, Quirk
from infra.local.iot.simulator.stock_board import StockBoard, random_address

_REPORT_SECONDS: Final = 5.0
_DEFAULT_BROKER: Final = "mqtt://127.0.0.1:1883"
_PHOTO: Final = Path(simulator.__file__).with_name("photo.jpg")


@Parameter(name="*", negative=())
@dataclass(frozen=True, slots=True)
class StockOptions:
    """A stock board, from an empty flash on.

    Args:
        stock: Simulate one stock board: it checks in, shows its code, is claimed, and connects with the settings that
            it gets.
        ota_url: The address on the board's own page; by default that of the 'kho serve' that uses the data folder.
        flash: The folder of the board's flash; by default a temporary one, an empty flash.
        verbose: Print each request of the board and its answer, with its Client-Id and its password.
    """

    stock: bool = False
    ota_url: str = ""
    flash: Path | None = None
    verbose: bool = False


@Parameter(name="*", negative=())
@dataclass(frozen=True, slots=True)
class FleetOptions:
    """The size and the kind of a simulated fleet.

    Args:
        number: The number of devices.
        prefix: The prefix of their ids; a number follows.
        quirk: An additional quirk; may be given several times.
        plain: Leave out the firmware's quirks: devices follow the protocol description.
        reconnect: The shortest and the longest delay before a reconnect, in seconds.
        keepalive: The MQTT keepalive, in seconds.
        user: Their user name; by default each device's id, if there is a password.
        password: Their password.
        camera: Give them a camera, which sends photos to the address that their session offers.
        photo: What the camera sees, a JPEG file; by default a ball and a cup.
    """

    number: Annotated[int, Parameter(name=("--number", "-n"), validator=Number(gte=1, lte=20_000))] = 1
    prefix: str = "sim-"
    quirk: tuple[Quirk, ...] = ()
    plain: bool = False
    reconnect: tuple[float, float] = (10.0, 60.0)
    keepalive: int = 240
    user: str = ""
    password: str = ""
    camera: bool = False
    photo: Path | None = None

    def model(self) -> DeviceModel:
        """Return the model shared by the devices."""
        camera = Camera(self._read_photo(), random_address(), str(uuid4())) if self.camera else None
        return DeviceModel(
            camera=camera,
            show_alert=_print_alert,
            quirks=frozenset(self.quirk) | (frozenset() if self.plain else FIRMWARE),
            reconnect_seconds=self.reconnect,
            keepalive=self.keepalive,
            user_name=self.user or None,
            password=self.password.encode("utf-8") or None,
        )

    def _read_photo(self) -> bytes:
        try:
            return (self.photo or _PHOTO).read_bytes()
        except OSError as error:
            exit_with_error(f"{self.photo} cannot be read: {error.strerror}.")

    def ids(self) -> list[str]:
        """Return the devices' ids."""
        return [f"{self.prefix}{number}" for number in range(1, self.number + 1)]


_DEFAULT_FLEET: Final = FleetOptions()
_DEFAULT_STOCK: Final = StockOptions()


def simulate(
    fleet: FleetOptions = _DEFAULT_FLEET,
    *,
    stock: StockOptions = _DEFAULT_STOCK,
    mqtt_url: str = "",
    data: Path = DEFAULT_DATA,
) -> None:
    """Simulate devices until Ctrl-C: each connects, answers calls, and reconnects after a loss.

    Args:
        mqtt_url: The broker, such as mqtt://127.0.0.1:1883; by default that of the 'kho serve' that uses the data
            folder.
        data: The data folder of 'kho serve'.
    """
    # A shell starts background commands with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    server = running_server(data)
    with contextlib.suppress(KeyboardInterrupt):
        if stock.stock:
            _simulate_stock_board(fleet, stock, f"{server['address']}/ota/" if server else "")
            return
        host, port = host_and_port(mqtt_url or (server["mqtt_url"] if server else _DEFAULT_BROKER))
        _simulate_fleet(Fleet(host, port, fleet.ids(), fleet.model()))


def _simulate_stock_board(fleet: FleetOptions, options: StockOptions, default_url: str) -> None:
    ota_url = options.ota_url or default_url
    if not ota_url:
        exit_with_error("no 'kho serve' uses this data folder. Start it, or pass an --ota-url.")
    trace = _print_at_once if options.verbose else lambda _line: None
    with contextlib.ExitStack() as stack:
        folder = options.flash or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kho-board-")))
        board = StockBoard(
            Flash(folder),
            ota_url,
            pause=threading.Event().wait,
            trace=trace,
            show=lambda activation: _print_at_once(f"The board shows: {activation.message!r}"),
        )
        try:
            settings = board.start()
        except (FirmwareAbort, FirmwareHang) as failure:
            exit_with_error(f"a stock board would fail here for ever: {failure}.")
        if settings is None:
            exit_with_error(f"{ota_url} gave the board no MQTT settings.")
        model = fleet.model()
        camera = model.camera
        model = replace(
            model,
            camera=camera and replace(camera, address=board.address, client_id=board.client_id, trace=trace),
            board=board.board,
            version=board.version,
            user_name=settings.user_name or None,
            password=settings.password.encode() or None,
            keepalive=settings.keepalive,
        )
        _simulate_fleet(Fleet(settings.host, settings.port, [settings.client_id], model))


def _simulate_fleet(fleet: Fleet) -> None:
    """Run devices until Ctrl-C."""
    pause = threading.Event()
    with fleet:
        fleet.start()
        where = f"{fleet.host}, port {fleet.port}"
        if not fleet.connected:
            exit_with_error(
                f"no device could connect to {where}. Is 'kho serve' running, and are the devices registered?"
            )
        try:
            print(f"{fleet.connected} of {len(fleet.devices)} devices are connected to {where}.")
            _print_at_once("Press Ctrl-C to stop.")
            while not pause.wait(_REPORT_SECONDS):
                _report(fleet)
        finally:
            _report(fleet)


def _print_at_once(line: str) -> None:
    print(line, flush=True)


def _print_alert(device_id: str, alert: DeviceAlert) -> None:
    _print_at_once(f"{device_id} shows: {alert.status!r}, {alert.message!r}, {alert.emotion!r}")


def _report(fleet: Fleet) -> None:
    counters = [device.counters for device in fleet.devices]
    received, sent = sum(each.received for each in counters), sum(each.sent for each in counters)
    runs = sum(len(device.firmware.runs) for device in fleet.devices)
    print(f"{fleet.connected} connected; {received} messages received, {runs} calls run, {sent} sent", flush=True)
