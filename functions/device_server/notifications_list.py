"""device-server/notifications/list: what a device has told unasked, newest first."""

from __future__ import annotations

from dataclasses import dataclass

from device_server import OfDevice, Paged, device_of, table
from doors.direct import Caller, method
from shared.devices.notifications import Notifications, Told
from shared.rpc.errors import NotFound
from shared.rpc.offers import Tool


class ListNotifications(OfDevice, Paged):
    """Whose notifications, and which part of them."""


@dataclass(frozen=True, slots=True)
class NotificationPage:
    """Notifications, newest first; `next_cursor` where older ones follow."""

    notifications: list[Told]
    next_cursor: str | None = None


@method(
    "device-server/notifications/list",
    role="reader",
    errors=(NotFound,),
    tool=Tool(
        "Read a device's notifications",
        "reads",
        "Read what a device has told by itself in the last week, newest first: changes of its state, for instance.",
        name="device_notifications_list",
    ),
)
def handler(params: ListNotifications, caller: Caller) -> NotificationPage:
    """List a device's newest thousand notifications."""
    device = device_of(caller, params.device_id)
    found, more = Notifications(table(), device.tenant_id, device.id).listed(params.limit, params.cursor)
    return NotificationPage(found, more)
