"""device-server/devices/list: the tenant's devices and their connection state."""

from dataclasses import dataclass

from api.deployment import DATA_PLANE, lambda_function, table
from api.handler import method
from shared.devices.registry import devices_table, registry
from shared.devices.schemas import DeviceView, device_view
from shared.devices.sessions import read_all
from shared.rpc.caller import Caller
from shared.rpc.cursor import PageParams
from shared.rpc.mcp_catalog import McpTool


@dataclass(frozen=True, slots=True)
class DevicePage:
    """Devices ordered by id; `next_cursor` is set if more follow."""

    devices: list[DeviceView]
    next_cursor: str | None = None


@lambda_function(table("Devices", "BatchGetItem", "Query"), DATA_PLANE)
@method(
    "device-server/devices/list",
    role="reader",
    example={"limit": 10},
    tool=McpTool(
        "List devices",
        "reads",
        "List the devices: their ids, and whether each is connected. If the result has a 'next_cursor', "
        "call again with it as 'cursor'.",
    ),
)
def handler(params: PageParams, caller: Caller) -> DevicePage:
    """List devices by id."""
    devices, more = registry().page(caller.tenant_id, params.limit, params.cursor)
    states = read_all(devices_table(), caller.tenant_id, [each.id for each in devices])
    return DevicePage([device_view(each, states[each.id]) for each in devices], more)
