"""The three simulated devices of a tenant that wants to try devices without having one."""

from __future__ import annotations

import hashlib
import threading
from functools import cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from infra.local.iot.simulator.device import DeviceModel
from infra.local.iot.simulator.fleet import Fleet
from infra.local.iot.simulator.sample_tools import BOARDS
from shared.devices.registry import registry
from shared.platform.config import config
from shared.rpc.errors import Unavailable

if TYPE_CHECKING:
    from shared.devices.registry import RegisteredDevice

_ID_DIGITS: Final = 8
_RECONNECT_SECONDS: Final = (1.0, 2.0)
_MQTT_PORT: Final = 1883


class SampleDevices:
    """The simulated devices of all tenants, in this process. Each tenant has its own, with passwords of their own."""

    def __init__(self) -> None:
        self._fleets: dict[str, Fleet] = {}
        self._lock = threading.Lock()

    def connect(self, tenant_id: str) -> list[RegisteredDevice]:
        """Register and connect the tenant's devices, unless they are connected. Return them."""
        suffix = hashlib.sha256(tenant_id.encode("utf-8")).hexdigest()[:_ID_DIGITS]
        boards = {f"simulated-{kind}-{suffix}": kind for kind in BOARDS}
        devices = registry()
        with self._lock:
            fleet = self._fleets.get(tenant_id)
            is_whole = fleet and fleet.connected == len(boards)
            if not (is_whole and all(devices.find(tenant_id, device_id) for device_id in boards)):
                if fleet:
                    self._fleets.pop(tenant_id).close()
                self._fleets[tenant_id] = self._start(tenant_id, boards)
        return [devices.require(tenant_id, device_id) for device_id in boards]

    def close(self) -> None:
        """Disconnect all devices."""
        with self._lock:
            while self._fleets:
                self._fleets.popitem()[1].close()

    def _start(self, tenant_id: str, boards: dict[str, str]) -> Fleet:
        models = {device_id: _model(tenant_id, device_id, kind) for device_id, kind in boards.items()}
        broker = urlsplit(config().mqtt_url)
        fleet = Fleet(broker.hostname or "127.0.0.1", broker.port or _MQTT_PORT, list(boards), models.__getitem__)
        fleet.start()
        if fleet.connected < len(boards):
            fleet.close()
            raise Unavailable("The broker accepts no simulated device.", guidance="Is it the broker of 'kho serve'?")
        return fleet


def _model(tenant_id: str, device_id: str, kind: str) -> DeviceModel:
    """Register the device. Return its model, which has its new password."""
    devices, board = registry(), BOARDS[kind]
    if devices.find(tenant_id, device_id):
        devices.revoke(device_id)  # its password was lost with the server that simulated it
    _, password = devices.register(tenant_id, device_id, name=board.name)
    return DeviceModel(
        board=f"simulated-{kind}",
        tools=board.tools(),
        reconnect_seconds=_RECONNECT_SECONDS,
        password=password.encode("utf-8"),
    )


@cache
def sample_devices() -> SampleDevices:
    """Return the simulated devices of this process."""
    return SampleDevices()
