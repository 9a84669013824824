"""device-server/notifications/list: what a device has told unasked, newest first."""

from __future__ import annotations

from dataclasses import dataclass

from api.deployment import lambda_function, table
from api.handler import Caller, method
from device_server import DeviceParams, require_device
from shared.devices.notifications import Notifications, StoredNotification
from shared.devices.registry import devices_table
from shared.rpc.cursor import PageParams
from shared.rpc.errors import NotFound
from shared.rpc.mcp_catalog import McpTool


class ListNotifications(DeviceParams, PageParams):
    """Whose notifications, and which part of them."""


@dataclass(frozen=True, slots=True)
class NotificationPage:
    """Notifications, newest first; `next_cursor` where older ones follow."""

    notifications: list[StoredNotification]
    next_cursor: str | None = None


@lambda_function(table("Devices", "GetItem", "Query"))
@method(
    "device-server/notifications/list",
    role="reader",
    errors=(NotFound,),
    example={"device_id": "kitchen"},
    tool=McpTool(
        "Read a device's notifications",
        "reads",
        "Read what a device has told by itself in the last week, newest first: changes of its state, for instance.",
        name="device_notifications_list",
    ),
)
def handler(params: ListNotifications, caller: Caller) -> NotificationPage:
    """List a device's newest thousand notifications."""
    device = require_device(caller, params.device_id)
    found, more = Notifications(devices_table(), device.tenant_id, device.id).page(params.limit, params.cursor)
    return NotificationPage(found, more)
