"""Stores of a device's presence and session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from shared.aws.dynamodb import ConditionFailed, Write, from_item, to_item
from shared.devices import keys
from shared.platform.clock import SKEW_SECONDS, now_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.aws.dynamodb import Item, Table

_SKEW_MS: Final = SKEW_SECONDS * 1000
_LONGEST_HANDSHAKE_SECONDS: Final = 30
"""Longer than a request runs."""
_REORDERED_MS: Final = 5_000
"""A disconnect may be stamped later than the connect that replaced the connection, but by no more than this."""


@dataclass(frozen=True, slots=True)
class DevicePresence:
    """A device's connection state, as of the latest lifecycle event."""

    connected: bool
    connection: str
    """The broker's id of this connection."""
    changed_at: int
    """The time of the connect or disconnect, in milliseconds since 1970."""
    version: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class DeviceSession:
    """A session started by `initialize`, with the identity that the device reported."""

    id: str
    name: str
    version: str
    started_at: int
    connection: str
    """The connection on which the session started, if a lifecycle event had reported one."""
    handshake: str = ""
    """The unique id of the handshake that started it. A hello may change the session's id, but not this."""
    vision_hash: str = ""
    """The hash of the device's token for photos, if Kho explains them."""
    is_obsolete: bool = False
    """True if the device has checked in with other firmware since."""


@dataclass(frozen=True, slots=True)
class DeviceState:
    """A snapshot of a device's state."""

    presence: DevicePresence | None
    session: DeviceSession | None
    answered_at: int | None = None
    """The time of the device's last reply, in milliseconds since 1970, to within some seconds."""

    @property
    def ready(self) -> bool:
        """True if a session exists that started on the device's current connection."""
        presence, session = self.presence, self.session
        if session is None or presence is None or not presence.connected:
            return session is not None
        # A device's message may arrive before the lifecycle event of its connection.
        return presence.connection == session.connection or session.started_at >= presence.changed_at


class SessionStore:
    """One device's presence and session."""

    def __init__(self, table: Table, tenant_id: str, device_id: str) -> None:
        self._table = table
        self._tenant_id = tenant_id
        self._device_id = device_id
        self._partition = keys.device(tenant_id, device_id)

    def read(self) -> DeviceState:
        """Return the current state."""
        return read_all(self._table, self._tenant_id, [self._device_id])[self._device_id]

    def record_presence(self, presence: DevicePresence, events: Sequence[Write] = ()) -> bool:
        """Store a lifecycle event and the events of it. Return False if it is repeated or older than the stored one."""
        # A broker that restarted, or has forgotten the device, counts its connections from 0 again.
        newer_than_stored = (
            "#version < :version OR changed_at < :before OR changed_at > :latest OR "
            "(#version = :version AND #connection <> :connection AND changed_at < :at)"
        )
        if not presence.connected:
            newer_than_stored += " OR (#connection = :connection AND connected = :true)"
        try:
            change = Write(
                "Put",
                {"pk": self._partition, "sk": keys.PRESENCE} | to_item(presence),
                condition=f"attribute_not_exists(pk) OR {newer_than_stored}",
                names={"#version": "version", "#connection": "connection"},
                values={
                    ":version": presence.version,
                    ":connection": presence.connection,
                    ":at": presence.changed_at,
                    ":before": presence.changed_at - _REORDERED_MS,
                    ":latest": now_ms() + _SKEW_MS,
                    **({} if presence.connected else {":true": True}),
                },
            )
            if events:
                self._table.transact(change, *events)
            else:
                self._table.write(change)
        except ConditionFailed:
            return False
        return True

    def claim(self, claimant: str, seconds: float) -> bool:
        """Claim the exclusive right to perform the handshake for `seconds`. Return False if another claim is active."""
        now = now_ms()
        return self._update(
            "SET handshake_by = :claimant, handshake_until = :until",
            "attribute_not_exists(handshake_by) OR handshake_until < :now OR handshake_until > :latest",
            {
                ":claimant": claimant,
                ":until": now + int(seconds * 1000),
                ":now": now,
                ":latest": now + _LONGEST_HANDSHAKE_SECONDS * 1000 + _SKEW_MS,
            },
        )

    def start(self, claimant: str, session: DeviceSession) -> bool:
        """Store the session that `claimant` started. Return False if its claim was lost."""
        return self._update(
            "SET session_id = :id, #name = :name, #version = :version, started_at = :at, #connection = :connection, "
            "handshake = :claimant, answered_at = :at, vision_hash = :vision_hash "
            "REMOVE handshake_by, handshake_until, is_obsolete",
            "handshake_by = :claimant",
            {
                ":claimant": claimant,
                ":id": session.id,
                ":name": session.name,
                ":version": session.version,
                ":at": session.started_at,
                ":connection": session.connection,
                ":vision_hash": session.vision_hash,
            },
            {"#name": "name", "#version": "version", "#connection": "connection"},
        )

    def rename(self, before: str, session_id: str) -> bool:
        """Change the session's id. Return False if its id is no longer `before`."""
        return self._update("SET session_id = :id", "session_id = :before", {":id": session_id, ":before": before})

    def record_firmware(self, version: str) -> None:
        """Record that the device has checked in with this firmware. A session of other firmware is obsolete."""
        self._update(
            "SET is_obsolete = :true",
            "attribute_exists(session_id) AND #version <> :version",
            {":true": True, ":version": version},
            {"#version": "version"},
        )

    def record_answer(self, at: int) -> None:
        """Record the time of a reply."""
        condition = "attribute_not_exists(answered_at) OR answered_at < :at OR answered_at > :latest"
        self._update("SET answered_at = :at", condition, {":at": at, ":latest": now_ms() + _SKEW_MS})

    def release_claim(self, claimant: str) -> None:
        """Release a claim after a failed handshake."""
        self._update("REMOVE handshake_by, handshake_until", "handshake_by = :claimant", {":claimant": claimant})

    def accept_hello(self, seconds: float) -> bool:
        """Return True unless the device sent another hello within `seconds`."""
        now = now_ms()
        return self._update(
            "SET greeted_at = :now",
            "attribute_not_exists(greeted_at) OR greeted_at < :before OR greeted_at > :latest",
            {":now": now, ":before": now - int(seconds * 1000), ":latest": now + _SKEW_MS},
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
    """Return the current state of each device."""
    by_partition = {keys.device(tenant_id, device_id): device_id for device_id in device_ids}
    stored = table.get_all((pk, sk) for pk in by_partition for sk in (keys.PRESENCE, keys.SESSION))
    items = {(by_partition[item["pk"]], item["sk"]): item for item in stored}
    return {each: _state(items.get((each, keys.PRESENCE)), items.get((each, keys.SESSION))) for each in device_ids}


def _state(presence: Item | None, session: Item | None) -> DeviceState:
    return DeviceState(
        from_item(DevicePresence, presence) if presence else None,
        _session(session) if session and "session_id" in session else None,
        session.get("answered_at") if session else None,
    )


def _session(item: Item) -> DeviceSession | None:
    if item["started_at"] > now_ms() + _SKEW_MS:
        return None  # of a clock that was ahead: nothing tells its age, nor whether it is of this connection
    return from_item(DeviceSession, item | {"id": item["session_id"]})
