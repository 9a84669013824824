"""Take what devices send unasked: hellos are answered, notifications kept, and the rest is counted and dropped."""

from __future__ import annotations

import base64
import binascii
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from api.deployment import DEVICE_MESSAGES, IotRule, lambda_function, table
from shared.config import config
from shared.devices import protocol
from shared.devices.device_client import DeviceHello
from shared.devices.dropped_messages import DroppedMessages
from shared.devices.mqtt.client_factory import device_client
from shared.devices.notifications import Notifications
from shared.devices.registry import devices_table, registry
from shared.devices.sessions import SessionStore
from shared.rpc.errors import KhoError
from shared.telemetry import correlation_id_from, logger, observe

if TYPE_CHECKING:
    from shared.devices.registry import RegisteredDevice

_HANDSHAKE_SECONDS: Final = 12.0
_HELLOS_APART_SECONDS: Final = 0.2
_dropped: Final = DroppedMessages()


@lambda_function(
    table("Devices", "BatchGetItem", "BatchWriteItem", "GetItem", "PutItem", "Query", "UpdateItem"),
    DEVICE_MESSAGES,
    rules=(
        IotRule(
            "DeviceUp",
            "Send notifications and hellos of devices to the inbox.",
            # In base64, because it may not be JSON. A reply goes to the function that waits for it.
            "SELECT encode(*, 'base64') AS payload, topic(2) AS device_id, timestamp() AS timestamp "
            "FROM 'devices/+/up' WHERE isUndefined(payload.id)",
        ),
    ),
)
def handler(event: dict[str, Any], _context: Any) -> None:
    """Take one message, in base64, for it may not be JSON."""
    with observe("workers/device_inbox", correlation_id_from(None)):
        message = protocol.parse_message(_payload(event))
        if isinstance(message, protocol.RpcReply | protocol.RpcFailure | protocol.UnreadableReply):
            return  # it is for whoever has asked
        device = registry().appear(str(event.get("device_id", "")))
        if device is None or device.revoked_at:
            return
        match message:
            case protocol.Hello():
                _greet(device, message, _received_at(event))
            case protocol.DeviceNotification():
                Notifications(devices_table(), device.tenant_id, device.id).keep(message, _received_at(event))
            case protocol.InvalidMessage():
                _dropped.note(message.kind, device.id)
        _dropped.count()


def _payload(event: dict[str, Any]) -> bytes:
    with suppress(binascii.Error, TypeError, ValueError):
        return base64.b64decode(event["payload"], validate=True)
    return b""


def _received_at(event: dict[str, Any]) -> int:
    at = event.get("timestamp")
    return at if isinstance(at, int) else int(time.time() * 1000)


def _greet(device: RegisteredDevice, hello: protocol.Hello, at: int) -> None:
    """Answer a hello with a fresh session, so that the device does not wait for it."""
    session_id, deadline = secrets.token_hex(16), time.monotonic() + _HANDSHAKE_SECONDS
    try:
        device_client().exchange.notify(device, protocol.hello(session_id, hello.transport, _audio_channel()), deadline)
        if not hello.mcp:
            return
        if SessionStore(devices_table(), device.tenant_id, device.id).greet(_HELLOS_APART_SECONDS):
            device_client().begin(device, deadline, DeviceHello(session_id, at))
        else:  # it was asked who it is a moment ago
            _dropped.note("repeated", device.id)
    except KhoError as error:  # whoever calls the device will try again
        logger.warning("no session", extra={"device_id": device.id, "outcome": error.code})


def _audio_channel() -> dict[str, Any] | None:
    """Where the audio goes, with a key that is new each time; None where no audio server is configured."""
    settings = config()
    if not settings.audio_server:
        return None
    key, nonce = secrets.token_hex(16), secrets.token_hex(16)
    return {"server": settings.audio_server, "port": settings.audio_port, "key": key, "nonce": nonce}
