"""device-server/devices/release: give up a device, which is disconnected; a claimed board shows a code again."""

from dataclasses import dataclass

from api.deployment import DEVICE_DISCONNECTION, lambda_function, table
from api.handler import method
from device_server import DeviceParams
from device_server.devices import disconnect_device, require_device
from shared.devices.registry import registry
from shared.rpc.caller import Caller
from shared.rpc.errors import NotFound
from shared.rpc.mcp_catalog import McpTool


@dataclass(frozen=True, slots=True)
class ReleasedDevice:
    """A device that was released."""

    device_id: str
    released_at: str


@lambda_function(table("Devices", "GetItem", "UpdateItem"), DEVICE_DISCONNECTION)
@method(
    "device-server/devices/release",
    role="operator",
    errors=(NotFound,),
    example={"device_id": "old-lamp"},
    tool=McpTool(
        "Release a device",
        "removes",
        "Give up a device: its password becomes invalid and its connection is closed. A board that was claimed by a "
        "code shows one again when it is switched on.",
    ),
)
def handler(params: DeviceParams, caller: Caller) -> ReleasedDevice:
    """Release a device."""
    device = registry().revoke(require_device(caller, params.device_id).id)
    disconnect_device(caller, device.id)
    return ReleasedDevice(device.id, device.revoked_at or "")
