"""Consumer of IoT Core's lifecycle events: store connection state, and start the first session of a device.

Events may be repeated, late and out of order; outdated ones are ignored. A handshake takes seconds, so a device that
comes back has its next session with its next call or list: ten thousand may come back at once.
"""

import time
from typing import Any, Final

from api.deployment import DEVICE_MESSAGES, IotRule, lambda_function, table
from shared.devices.mqtt.client_factory import device_client
from shared.devices.registry import devices_table, registry
from shared.devices.sessions import DevicePresence, SessionStore
from shared.devices.webhooks import webhooks
from shared.platform.telemetry import correlation_id_from, count, logger
from shared.rpc.errors import KhoError
from shared.rpc.observation import observe

_HANDSHAKE_SECONDS: Final = 12.0
"""A device whose hello was not answered is silent for ten seconds."""


@lambda_function(
    table("Devices", "BatchGetItem", "BatchWriteItem", "GetItem", "PutItem", "Query", "UpdateItem"),
    DEVICE_MESSAGES,
    rules=(
        IotRule(
            "DeviceConnected",
            "Report devices that have connected.",
            "SELECT * FROM '$aws/events/presence/connected/+' WHERE NOT startswith(clientId, 'kho-backend-')",
        ),
        IotRule(
            "DeviceDisconnected",
            "Report devices that have disconnected.",
            "SELECT * FROM '$aws/events/presence/disconnected/+' WHERE NOT startswith(clientId, 'kho-backend-')",
        ),
    ),
    concurrency="DeviceConcurrency",
)
def handler(event: dict[str, Any], _context: Any) -> None:
    """Process one event."""
    with observe("workers/device_presence", correlation_id_from(event.get("sessionIdentifier"))):
        presence = _presence(event)
        device = registry().find_or_register(str(event.get("clientId", ""))) if presence else None
        if device is None or presence is None or device.revoked_at:
            return
        data = {"connected": presence.connected} | ({"reason": presence.reason} if presence.reason else {})
        events = webhooks(device.tenant_id).event_writes("presence", device.id, presence.changed_at, data)
        if not SessionStore(devices_table(), device.tenant_id, device.id).record_presence(presence, events):
            return
        count(devices_connected=int(presence.connected), devices_disconnected=int(not presence.connected))
        if not presence.connected:
            return
        try:
            device_client().handshake.start_first_session(device, time.monotonic() + _HANDSHAKE_SECONDS)
        except KhoError as error:  # the next call retries
            logger.warning("session not started", extra={"device_id": device.id, "outcome": error.code})


def _presence(event: dict[str, Any]) -> DevicePresence | None:
    kind, at, version = event.get("eventType"), event.get("timestamp"), event.get("versionNumber", 0)
    if kind not in ("connected", "disconnected") or not isinstance(at, int) or not isinstance(version, int):
        return None
    reason = str(event.get("disconnectReason", "")) if kind == "disconnected" else ""
    return DevicePresence(kind == "connected", str(event.get("sessionIdentifier", "")), at, version, reason)
