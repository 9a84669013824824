"""Client presence and IoT Core's lifecycle events."""

import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from shared.platform.clock import now_ms
from shared.rpc.strict_json import compact

_REMEMBERED_CLIENTS: Final = 50_000


class DisconnectReason(Enum):
    """IoT Core's disconnect reasons."""

    AUTH_ERROR = "AUTH_ERROR"
    CLIENT_INITIATED_DISCONNECT = "CLIENT_INITIATED_DISCONNECT"
    CLIENT_ERROR = "CLIENT_ERROR"
    CONNECTION_LOST = "CONNECTION_LOST"
    DUPLICATE_CLIENTID = "DUPLICATE_CLIENTID"
    MQTT_KEEP_ALIVE_TIMEOUT = "MQTT_KEEP_ALIVE_TIMEOUT"
    SERVER_INITIATED_DISCONNECT = "SERVER_INITIATED_DISCONNECT"
    API_INITIATED_DISCONNECT = "API_INITIATED_DISCONNECT"


@dataclass(slots=True)
class PresenceRecord:
    """One current or past connection of a client."""

    client_id: str
    keepalive: int
    address: str
    version: int = 0
    session_identifier: str = field(default_factory=lambda: secrets.token_hex(16))
    connected_at: int = field(default_factory=now_ms)
    disconnected_at: int | None = None
    reason: DisconnectReason | None = None


class PresenceTracker:
    """The latest connection of each client, and the publisher of its lifecycle events."""

    def __init__(self, publish: Callable[[str, bytes], object], seconds: float) -> None:
        self._publish = publish
        self._seconds = seconds
        self._records: OrderedDict[str, PresenceRecord] = OrderedDict()

    def on_connected(self, record: PresenceRecord) -> None:
        """Record a connect and publish its event."""
        previous = self._records.pop(record.client_id, None)
        record.version = previous.version + 1 if previous else 0
        self._records[record.client_id] = record
        while len(self._records) > _REMEMBERED_CLIENTS:
            self._records.popitem(last=False)
        self._publish_event(record, "connected", record.connected_at, {"ipAddress": record.address})

    def on_disconnected(self, record: PresenceRecord, reason: DisconnectReason) -> None:
        """Record a disconnect and publish its event."""
        record.disconnected_at, record.reason = now_ms(), reason
        client_initiated = reason is DisconnectReason.CLIENT_INITIATED_DISCONNECT
        details = {"clientInitiatedDisconnect": client_initiated, "disconnectReason": reason.value}
        self._publish_event(record, "disconnected", record.disconnected_at, details)

    def find(self, client_id: str) -> PresenceRecord | None:
        """Return the client's latest connection; after its end, only for a time."""
        record = self._records.get(client_id)
        if record and record.disconnected_at:
            age_ms = now_ms() - record.disconnected_at
            return record if 0 <= age_ms <= self._seconds * 1000 else None
        return record

    def _publish_event(self, record: PresenceRecord, event_type: str, timestamp: int, details: dict[str, Any]) -> None:
        event = {
            "clientId": record.client_id,
            "timestamp": timestamp,
            "eventType": event_type,
            "sessionIdentifier": record.session_identifier,
            "principalIdentifier": record.client_id,
            **details,
            "versionNumber": record.version,
        }
        self._publish(f"$aws/events/presence/{event_type}/{record.client_id}", compact(event).encode("utf-8"))
