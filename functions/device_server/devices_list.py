"""device-server/devices/list: the tenant's devices, and which are connected."""

from __future__ import annotations

from dataclasses import dataclass

from device_server import Paged, table
from device_server.views import DeviceView, view
from doors.direct import Caller, method
from shared.devices.registry import registry
from shared.devices.sessions import read_all
from shared.rpc.offers import Tool


@dataclass(frozen=True, slots=True)
class Devices:
    """Devices in order of their ids; `next_cursor` where more follow."""

    devices: list[DeviceView]
    next_cursor: str | None = None


@method(
    "device-server/devices/list",
    role="reader",
    tool=Tool(
        "List devices",
        "reads",
        "List the devices that there are: their ids, and whether each is connected. Where 'next_cursor' comes back, "
        "call again with it as 'cursor'.",
    ),
)
def handler(params: Paged, caller: Caller) -> Devices:
    """List devices by id."""
    devices, more = registry().page(caller.tenant_id, params.limit, params.cursor)
    states = read_all(table(), caller.tenant_id, [each.id for each in devices])
    return Devices([view(each, states[each.id]) for each in devices], more)
