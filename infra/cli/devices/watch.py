"""What happens to devices, found by asking again and again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, Literal

from shared.clock import now

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.cli.devices.client import DeviceServerClient

_PAGE_SIZE: Final = 100

Kind = Literal["connected", "disconnected", "session", "notification"]


@dataclass(frozen=True, slots=True)
class DeviceEvent:
    """One thing that has happened to a device."""

    at: str
    device_id: str
    kind: Kind
    told: dict[str, Any]

    def record(self) -> dict[str, Any]:
        """It as JSON."""
        return asdict(self)

    def line(self) -> str:
        """It in one line to read."""
        words = (said if isinstance(said, str) else json.dumps(said, ensure_ascii=False) for said in self.told.values())
        return "  ".join([self.at, self.device_id, self.kind, *words])


@dataclass(frozen=True, slots=True)
class _DeviceState:
    """What was seen last of one device."""

    connected: bool | None
    """None beside a broker that tells of no presence."""
    session_id: str | None
    newest: dict[str, Any] | None
    """The newest of its notifications."""


class DeviceWatcher:
    """Devices as they were when last looked at."""

    def __init__(self, ask: DeviceServerClient, device_id: str = "") -> None:
        self._ask = ask
        self._device_id = device_id
        self._known: dict[str, _DeviceState] = {}
        for device in self._devices():
            list(self._changes(device))

    def poll(self) -> Iterator[DeviceEvent]:
        """What has happened since the last look, device by device."""
        for device in self._devices():
            yield from self._changes(device)

    def _devices(self) -> list[dict[str, Any]]:
        if self._device_id:
            return [self._ask("devices/get", device_id=self._device_id)]
        return list_devices(self._ask)

    def _changes(self, device: dict[str, Any]) -> Iterator[DeviceEvent]:
        device_id = device["device_id"]
        before = self._known.get(device_id)
        newest = before.newest if before else None
        told = self._told(device_id, newest)
        state = _DeviceState(device.get("connected"), device.get("session_id"), told[0] if told else newest)
        self._known[device_id] = state
        if before is None:
            return
        if before.connected != state.connected:
            kind: Kind = "connected" if state.connected else "disconnected"
            yield DeviceEvent(device.get("changed_at") or now(), device_id, kind, _of(device, "disconnect_reason"))
        if before.session_id != state.session_id:
            yield DeviceEvent(now(), device_id, "session", _of(device, "session_id", "board", "firmware"))
        for each in reversed(told):
            yield DeviceEvent(each["at"], device_id, "notification", _of(each, "method", "params"))

    def _told(self, device_id: str, newest: dict[str, Any] | None) -> list[dict[str, Any]]:
        """The notifications that are newer than the newest that is known, newest first; at first, that one alone."""
        page = self._ask("notifications/list", device_id=device_id, limit=_PAGE_SIZE if newest else 1)["notifications"]
        return list(takewhile(lambda each: each != newest and (newest is None or each["at"] >= newest["at"]), page))


def list_devices(ask: DeviceServerClient) -> list[dict[str, Any]]:
    """All devices, page by page."""
    found: list[dict[str, Any]] = []
    more: dict[str, str] = {}
    while True:
        page = ask("devices/list", limit=1000, **more)
        found += page["devices"]
        if not page.get("next_cursor"):
            return found
        more = {"cursor": page["next_cursor"]}


def _of(whole: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: whole[name] for name in names if whole.get(name) is not None}
