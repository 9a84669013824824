"""Devices as callers see them."""

from __future__ import annotations

from dataclasses import dataclass

from shared.clock import iso_time
from shared.devices.mqtt.client_factory import reports_presence
from shared.devices.registry import Downlink, RegisteredDevice, devices_table
from shared.devices.sessions import DeviceState, SessionStore


@dataclass(frozen=True, slots=True)
class DeviceView:
    """One device: who it is, whether it is connected and since when, and who it last said it was."""

    device_id: str
    name: str
    downlink: Downlink
    created_at: str
    connected: bool | None = None
    """Unknown beside a broker that tells of no presence."""
    changed_at: str | None = None
    disconnect_reason: str | None = None
    board: str | None = None
    firmware: str | None = None
    session_id: str | None = None


def device_state(device: RegisteredDevice) -> DeviceState:
    """What is known of a device."""
    return SessionStore(devices_table(), device.tenant_id, device.id).read()


def device_view(device: RegisteredDevice, state: DeviceState, *, connected: bool | None = None) -> DeviceView:
    """A device, connected as lifecycle events have it unless it is known better."""
    presence, session = state.presence, state.session
    told = presence.connected if presence else (False if reports_presence() else None)
    return DeviceView(
        device_id=device.id,
        name=device.name,
        downlink=device.downlink,
        created_at=device.created_at,
        connected=told if connected is None else connected,
        changed_at=iso_time(presence.changed_at / 1000) if presence else None,
        disconnect_reason=presence.reason or None if presence else None,
        board=session.name if session else None,
        firmware=session.version if session else None,
        session_id=session.id if session else None,
    )
