"""device-server/notifications/list: a device's notifications, newest first."""

from dataclasses import dataclass

from api.deployment import lambda_function, table
from api.handler import method
from device_server import DeviceParams
from device_server.devices import require_device
from shared.devices.notifications import Notifications, StoredNotification
from shared.devices.registry import devices_table
from shared.rpc.caller import Caller
from shared.rpc.cursor import PageParams
from shared.rpc.errors import NotFound
from shared.rpc.mcp_catalog import McpTool


class ListNotifications(DeviceParams, PageParams):
    """A device and a page of its notifications."""


@dataclass(frozen=True, slots=True)
class NotificationPage:
    """Notifications, newest first; `next_cursor` is set if older ones follow."""

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
        "Read the notifications that a device sent in the last week, newest first, such as changes of its state.",
        name="device_notifications_list",
    ),
)
def handler(params: ListNotifications, caller: Caller) -> NotificationPage:
    """List a device's newest thousand notifications."""
    device = require_device(caller, params.device_id)
    notifications, next_cursor = Notifications(devices_table(), device.tenant_id, device.id).page(
        params.limit, params.cursor
    )
    return NotificationPage(notifications, next_cursor)
