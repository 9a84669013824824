"""device-server/devices/get: one device, and whether it is connected now."""

from api.deployment import DEVICE_CONNECTIONS, lambda_function, table
from api.handler import method
from device_server import DeviceParams
from device_server.devices import require_device
from shared.devices.mqtt.data_plane import data_plane
from shared.devices.schemas import DeviceView, device_state, device_view
from shared.rpc.caller import Caller
from shared.rpc.errors import NotFound, Unavailable
from shared.rpc.mcp_catalog import McpTool


@lambda_function(table("Devices", "BatchGetItem", "GetItem"), DEVICE_CONNECTIONS)
@method(
    "device-server/devices/get",
    role="reader",
    errors=(NotFound, Unavailable),
    example={"device_id": "kitchen"},
    tool=McpTool(
        "Look at a device",
        "reads",
        "Describe one device: its board, its firmware, whether it is connected now, and why not.",
    ),
)
def handler(params: DeviceParams, caller: Caller) -> DeviceView:
    """Describe one device."""
    device, plane = require_device(caller, params.device_id), data_plane()
    return device_view(device, device_state(device), connected=plane.is_connected(device.id) if plane else None)
