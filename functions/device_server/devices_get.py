"""device-server/devices/get: one device, and whether it is connected now."""

from __future__ import annotations

from device_server import OfDevice, device_of
from device_server.talking import data_plane
from device_server.views import DeviceView, state_of, view
from doors.direct import Caller, method
from shared.rpc.errors import NotFound, Unavailable
from shared.rpc.offers import Tool


@method(
    "device-server/devices/get",
    role="reader",
    errors=(NotFound, Unavailable),
    tool=Tool(
        "Look at a device",
        "reads",
        "Tell of one device: its board, its firmware, whether it is connected now, and why not.",
    ),
)
def handler(params: OfDevice, caller: Caller) -> DeviceView:
    """Tell of one device."""
    device, plane = device_of(caller, params.device_id), data_plane()
    return view(device, state_of(device), connected=plane.is_connected(device.id) if plane else None)
