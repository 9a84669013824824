"""Device events, detected by polling device-server."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, Literal

from infra.clients.agent.backend import read_pages
from shared.platform.clock import now

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.clients.agent.backend import Backend

_PAGE_SIZE: Final = 100

Kind = Literal["connected", "disconnected", "session", "notification"]


@dataclass(frozen=True, slots=True)
class DeviceEvent:
    """One event of a device."""

    at: str
    device_id: str
    kind: Kind
    details: dict[str, Any]

    def record(self) -> dict[str, Any]:
        """Return the event as JSON values."""
        return {"at": self.at, "device_id": self.device_id, "kind": self.kind, "told": self.details}

    def line(self) -> str:
        """Return the event as one line of text."""
        details = (
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for value in self.details.values()
        )
        return "  ".join([self.at, self.device_id, self.kind, *details])


@dataclass(frozen=True, slots=True)
class _DeviceState:
    """The last polled state of one device."""

    connected: bool | None
    """None if the broker does not report presence."""
    session_id: str | None
    newest: dict[str, Any] | None
    """Its newest notification."""


class DeviceWatcher:
    """A poller that reports the differences between two polls."""

    def __init__(self, client: Backend, device_id: str = "") -> None:
        self._client = client
        self._device_id = device_id
        self._states: dict[str, _DeviceState] = {}
        for device in self._devices():
            list(self._changes(device))

    def poll(self) -> Iterator[DeviceEvent]:
        """Yield the events since the last poll, device by device."""
        for device in self._devices():
            yield from self._changes(device)

    def _devices(self) -> list[dict[str, Any]]:
        if self._device_id:
            return [self._client.call("devices/get", {"device_id": self._device_id})]
        return list_devices(self._client)

    def _changes(self, device: dict[str, Any]) -> Iterator[DeviceEvent]:
        device_id = device["device_id"]
        before = self._states.get(device_id)
        newest = before.newest if before else None
        notifications = self._new_notifications(device_id, newest)
        state = _DeviceState(
            device.get("connected"), device.get("session_id"), notifications[0] if notifications else newest
        )
        self._states[device_id] = state
        if before is None:
            return
        if before.connected != state.connected:
            kind: Kind = "connected" if state.connected else "disconnected"
            yield DeviceEvent(device.get("changed_at") or now(), device_id, kind, _pick(device, "disconnect_reason"))
        if before.session_id != state.session_id:
            yield DeviceEvent(now(), device_id, "session", _pick(device, "session_id", "board", "firmware"))
        for each in reversed(notifications):
            yield DeviceEvent(each["at"], device_id, "notification", _pick(each, "method", "params"))

    def _new_notifications(self, device_id: str, newest: dict[str, Any] | None) -> list[dict[str, Any]]:
        """Return the notifications newer than `newest`, newest first; on the first poll only the newest one."""
        params = {"device_id": device_id, "limit": _PAGE_SIZE if newest else 1}
        page = self._client.call("notifications/list", params)["notifications"]
        return list(takewhile(lambda each: each != newest and (newest is None or each["at"] >= newest["at"]), page))


def list_devices(client: Backend) -> list[dict[str, Any]]:
    """Return all devices, page by page."""
    pages = read_pages(partial(client.call, "devices/list"), {"limit": 1000})
    return [device for page in pages for device in page["devices"]]


def _pick(record: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: record[name] for name in names if record.get(name) is not None}
