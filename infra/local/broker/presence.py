"""Which clients are connected, and IoT Core's events of their coming and going."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from shared.rpc.strict_json import compact

if TYPE_CHECKING:
    from collections.abc import Callable

_REMEMBERED_CLIENTS: Final = 50_000


def _now() -> int:
    return int(time.time() * 1000)


class DisconnectReason(Enum):
    """IoT Core's reasons of a disconnection."""

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
    """One connection of a client, under way or over."""

    client_id: str
    clean_session: bool
    keepalive: int
    session_expiry: int
    peer: tuple[str, int]
    local: tuple[str, int]
    version: int = 0
    session_identifier: str = field(default_factory=lambda: secrets.token_hex(16))
    connected_at: int = field(default_factory=_now)
    disconnected_at: int | None = None
    leaving: DisconnectReason | None = None

    @property
    def connected(self) -> bool:
        """Whether it is under way."""
        return self.disconnected_at is None


class PresenceTracker:
    """The latest visit of each client, and the events that tell of it."""

    def __init__(self, publish: Callable[[str, bytes], object]) -> None:
        self._publish = publish
        self._visits: OrderedDict[str, PresenceRecord] = OrderedDict()

    def arrive(self, visit: PresenceRecord) -> None:
        """A client has connected."""
        before = self._visits.pop(visit.client_id, None)
        visit.version = before.version + 1 if before else 0
        self._visits[visit.client_id] = visit
        while len(self._visits) > _REMEMBERED_CLIENTS:
            self._visits.popitem(last=False)
        self._tell(visit, "connected", visit.connected_at, {"ipAddress": visit.peer[0]})

    def leave(self, visit: PresenceRecord, leaving: DisconnectReason) -> None:
        """A client is gone."""
        visit.disconnected_at, visit.leaving = _now(), leaving
        own = leaving is DisconnectReason.CLIENT_INITIATED_DISCONNECT
        about = {"clientInitiatedDisconnect": own, "disconnectReason": leaving.value}
        self._tell(visit, "disconnected", visit.disconnected_at, about)

    def visit(self, client_id: str, remembered_seconds: float) -> PresenceRecord | None:
        """The client's latest visit, for a while after it has ended."""
        found = self._visits.get(client_id)
        if found and found.disconnected_at and _now() - found.disconnected_at > remembered_seconds * 1000:
            return None
        return found

    def _tell(self, visit: PresenceRecord, event: str, timestamp: int, about: dict[str, Any]) -> None:
        told = {
            "clientId": visit.client_id,
            "timestamp": timestamp,
            "eventType": event,
            "sessionIdentifier": visit.session_identifier,
            "principalIdentifier": visit.client_id,
            **about,
            "versionNumber": visit.version,
        }
        self._publish(f"$aws/events/presence/{event}/{visit.client_id}", compact(told).encode("utf-8"))
