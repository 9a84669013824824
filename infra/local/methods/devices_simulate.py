"""device-server/devices/simulate: connect three simulated devices, until the server ends."""

from dataclasses import dataclass

from api.handler import method
from infra.local.iot.simulator.sample_devices import sample_devices
from shared.rpc.caller import Caller
from shared.rpc.errors import Conflict, Unavailable
from shared.rpc.method import Params


class SimulateDevices(Params):
    """No parameters: the devices are always the same three."""


@dataclass(frozen=True, slots=True)
class SampleDevice:
    """A simulated device that is connected."""

    device_id: str
    name: str


@dataclass(frozen=True, slots=True)
class ConnectedSampleDevices:
    """The tenant's simulated devices: a lamp, a thermostat and a camera."""

    devices: list[SampleDevice]


@method("device-server/devices/simulate", role="operator", errors=(Unavailable, Conflict), example={})
def handler(_params: SimulateDevices, caller: Caller) -> ConnectedSampleDevices:
    """Connect the tenant's simulated devices. Change nothing if they are connected."""
    connected = sample_devices().connect(caller.tenant_id)
    return ConnectedSampleDevices([SampleDevice(each.id, each.name) for each in connected])
