"""What is known of a device's connection and of the session that was begun on it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from shared.devices import keys
from shared.dynamodb import ConditionFailed, Write

if TYPE_CHECKING:
    from shared.dynamodb import Item, Table

_REORDERED_MS: Final = 5_000
"""The end of a connection may be stamped later than the beginning of the one that replaced it, but not by more."""


@dataclass(frozen=True, slots=True)
class DevicePresence:
    """The latest that lifecycle events have told of a device's connection."""

    connected: bool
    connection: str
    """What the broker calls this connection."""
    changed_at: int
    """When it was made or lost, in milliseconds since 1970."""
    version: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class DeviceSession:
    """What an `initialize` has begun: who the device said it is."""

    id: str
    name: str
    version: str
    started_at: int
    connection: str
    """The connection on which it began, where lifecycle events had told of one."""


@dataclass(frozen=True, slots=True)
class DeviceState:
    """A device as it was when this was read."""

    presence: DevicePresence | None
    session: DeviceSession | None

    @property
    def ready(self) -> bool:
        """Whether there is a session, begun on the connection that the device has now."""
        presence, session = self.presence, self.session
        if session is None or presence is None or not presence.connected:
            return session is not None
        # What a device says may come before the event that tells of the connection on which it says it.
        return presence.connection == session.connection or session.started_at >= presence.changed_at


class SessionStore:
    """One device's presence and session."""

    def __init__(self, table: Table, tenant_id: str, device_id: str) -> None:
        self._table = table
        self._tenant_id = tenant_id
        self._device_id = device_id
        self._partition = keys.device(tenant_id, device_id)

    def read(self) -> DeviceState:
        """What is known now."""
        return read_all(self._table, self._tenant_id, [self._device_id])[self._device_id]

    def record_presence(self, presence: DevicePresence) -> bool:
        """Take a lifecycle event; False where one that was later is known already, or this very one."""
        # A broker that was started anew, or has forgotten the device, counts its connections from 0 again.
        newer = (
            "#version < :version OR changed_at < :before OR "
            "(#version = :version AND #connection <> :connection AND changed_at < :at)"
        )
        if not presence.connected:
            newer += " OR (#connection = :connection AND connected = :true)"
        try:
            self._table.write(
                Write(
                    "Put",
                    {
                        "pk": self._partition,
                        "sk": keys.PRESENCE,
                        "connected": presence.connected,
                        "connection": presence.connection,
                        "changed_at": presence.changed_at,
                        "version": presence.version,
                        "reason": presence.reason,
                    },
                    condition=f"attribute_not_exists(pk) OR {newer}",
                    names={"#version": "version", "#connection": "connection"},
                    values={
                        ":version": presence.version,
                        ":connection": presence.connection,
                        ":at": presence.changed_at,
                        ":before": presence.changed_at - _REORDERED_MS,
                        **({} if presence.connected else {":true": True}),
                    },
                )
            )
        except ConditionFailed:
            return False
        return True

    def claim(self, claimant: str, seconds: float) -> bool:
        """Whether `claimant` may shake hands with the device, which nobody else may until then."""
        now = _now()
        return self._update(
            "SET handshake_by = :claimant, handshake_until = :until",
            "attribute_not_exists(handshake_by) OR handshake_until < :now",
            {":claimant": claimant, ":until": now + int(seconds * 1000), ":now": now},
        )

    def begin(self, claimant: str, session: DeviceSession) -> bool:
        """Keep the session that `claimant` has begun, unless another has claimed the device since."""
        return self._update(
            "SET session_id = :id, #name = :name, #version = :version, started_at = :at, #connection = :connection "
            "REMOVE handshake_by, handshake_until",
            "handshake_by = :claimant",
            {
                ":claimant": claimant,
                ":id": session.id,
                ":name": session.name,
                ":version": session.version,
                ":at": session.started_at,
                ":connection": session.connection,
            },
            {"#name": "name", "#version": "version", "#connection": "connection"},
        )

    def rename(self, before: str, session_id: str) -> bool:
        """Give the session another id, unless it is no longer the one that had this id before."""
        return self._update("SET session_id = :id", "session_id = :before", {":id": session_id, ":before": before})

    def give_up(self, claimant: str) -> None:
        """Let others try, where the handshake has failed."""
        self._update("REMOVE handshake_by, handshake_until", "handshake_by = :claimant", {":claimant": claimant})

    def greet(self, seconds: float) -> bool:
        """Whether the device's hello begins a session: not those that come within `seconds` of another."""
        now = _now()
        return self._update(
            "SET greeted_at = :now",
            "attribute_not_exists(greeted_at) OR greeted_at < :before",
            {":now": now, ":before": now - int(seconds * 1000)},
        )

    def _update(
        self, expression: str, condition: str, values: dict[str, Any], names: dict[str, str] | None = None
    ) -> bool:
        key = {"pk": self._partition, "sk": keys.SESSION}
        try:
            self._table.write(Write("Update", key, expression, condition, values, names or {}))
        except ConditionFailed:
            return False
        return True


def read_all(table: Table, tenant_id: str, device_ids: list[str]) -> dict[str, DeviceState]:
    """What is known now of each of these devices."""
    by_partition = {keys.device(tenant_id, device_id): device_id for device_id in device_ids}
    found = table.get_all((pk, sk) for pk in by_partition for sk in (keys.PRESENCE, keys.SESSION))
    items = {(by_partition[item["pk"]], item["sk"]): item for item in found}
    return {
        each: DeviceState(_presence(items.get((each, keys.PRESENCE))), _session(items.get((each, keys.SESSION))))
        for each in device_ids
    }


def _now() -> int:
    return int(time.time() * 1000)


def _presence(item: Item | None) -> DevicePresence | None:
    if item is None:
        return None
    version, changed_at = int(item["version"]), int(item["changed_at"])
    return DevicePresence(item["connected"], item["connection"], changed_at, version, item["reason"])


def _session(item: Item | None) -> DeviceSession | None:
    if item is None or "session_id" not in item:
        return None
    started_at = int(item["started_at"])
    return DeviceSession(item["session_id"], item["name"], item["version"], started_at, item["connection"])
