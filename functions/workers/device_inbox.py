"""Consumer of device messages that are not replies: answer hellos, store notifications, count and drop the rest."""

import base64
import binascii
import secrets
import time
from contextlib import suppress
from typing import Any, Final

from api.deployment import DEVICE_MESSAGES, IotRule, lambda_function, table, variables
from shared.devices import protocol
from shared.devices.dropped_messages import DroppedMessages
from shared.devices.handshake import DeviceHello
from shared.devices.mqtt.client_factory import device_client
from shared.devices.notifications import Notifications
from shared.devices.registry import RegisteredDevice, devices_table, registry
from shared.devices.sessions import SessionStore
from shared.devices.webhooks import webhooks
from shared.platform.clock import now_ms
from shared.platform.config import config
from shared.platform.telemetry import correlation_id_from, logger
from shared.rpc.errors import KhoError
from shared.rpc.observation import observe

_HANDSHAKE_SECONDS: Final = 12.0
_MIN_HELLO_INTERVAL_SECONDS: Final = 0.2
_HELLO_MS: Final = 10_000
"""Firmware waits this long for an answer. A later one would disturb the next session."""
_OWN_ADDRESS: Final = "127.0.0.1"
_DISCARD_PORT: Final = 9
_dropped: Final = DroppedMessages()


@lambda_function(
    table("Devices", "BatchGetItem", "BatchWriteItem", "GetItem", "PutItem", "Query", "UpdateItem"),
    DEVICE_MESSAGES,
    variables("KHO_AUDIO_PORT", "KHO_AUDIO_SERVER"),
    rules=(
        IotRule(
            "DeviceUp",
            "Send notifications and hellos of devices to the inbox.",
            # In base64, because it may not be JSON. A reply goes to the function that waits for it.
            "SELECT encode(*, 'base64') AS payload, topic(2) AS device_id, timestamp() AS timestamp "
            "FROM 'devices/+/up' WHERE isUndefined(payload.id)",
        ),
    ),
    concurrency="DeviceConcurrency",
)
def handler(event: dict[str, Any], _context: Any) -> None:
    """Process one message. It is base64-encoded, since it may not be JSON."""
    with observe("workers/device_inbox", correlation_id_from(None)):
        message = protocol.parse_message(_payload(event))
        if isinstance(message, protocol.RpcReply | protocol.RpcFailure | protocol.UnreadableReply):
            return  # replies go to the function that sent the request
        device = registry().find_or_register(str(event.get("device_id", "")))
        if device is None or device.revoked_at:
            return
        match message:
            case protocol.Hello() if now_ms() - _received_at(event) > _HELLO_MS:
                _dropped.record("late", device.id)
            case protocol.Hello():
                _answer_hello(device, message, _received_at(event))
            case protocol.DeviceNotification():
                at, sequence = _received_at(event), _sequence(event)
                data = {"method": message.method, "params": message.params}
                events = webhooks(device.tenant_id).event_writes("notification", device.id, at, data, sequence)
                Notifications(devices_table(), device.tenant_id, device.id).add(message, at, sequence, events)
            case protocol.InvalidMessage():
                _dropped.record(message.kind, device.id)
        _dropped.count()


def _payload(event: dict[str, Any]) -> bytes:
    with suppress(binascii.Error, TypeError, ValueError):
        return base64.b64decode(event["payload"], validate=True)
    return b""


def _received_at(event: dict[str, Any]) -> int:
    at = event.get("timestamp")
    return at if isinstance(at, int) else now_ms()


def _sequence(event: dict[str, Any]) -> int:
    """Return the message's place in its millisecond, which the local broker tells and IoT Core does not."""
    sequence = event.get("sequence")
    return sequence if isinstance(sequence, int) else 0


def _answer_hello(device: RegisteredDevice, hello: protocol.Hello, at: int) -> None:
    """Answer a hello immediately with a new session id, so that the device does not wait, then start the session."""
    session_id, deadline = secrets.token_hex(16), time.monotonic() + _HANDSHAKE_SECONDS
    try:
        _open_audio_channel(device, hello, session_id, deadline)
        if not hello.mcp:
            return
        if SessionStore(devices_table(), device.tenant_id, device.id).accept_hello(_MIN_HELLO_INTERVAL_SECONDS):
            device_client().handshake.start_session(device, deadline, DeviceHello(session_id, at))
        else:  # a handshake was performed a moment ago
            _dropped.record("repeated", device.id)
    except KhoError as error:  # the next call retries
        logger.warning("session not started", extra={"device_id": device.id, "outcome": error.code})


def _open_audio_channel(device: RegisteredDevice, hello: protocol.Hello, session_id: str, deadline: float) -> None:
    """Answer the hello with the audio server's address.

    Firmware is silent for ten seconds if there is no address. Without an audio server it gets its own, and a goodbye.
    """
    settings, rpc = config(), device_client().rpc
    is_open = bool(settings.audio_server)
    channel = {
        "server": settings.audio_server if is_open else _OWN_ADDRESS,
        "port": settings.audio_port if is_open else _DISCARD_PORT,
        "key": secrets.token_hex(16),
        "nonce": secrets.token_hex(16),
    }
    is_expected = is_open or hello.transport == "udp"
    rpc.notify(device, protocol.hello(session_id, hello.transport, channel if is_expected else None), deadline)
    if is_expected and not is_open:
        rpc.notify(device, protocol.goodbye(session_id), deadline)
