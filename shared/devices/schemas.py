"""The response schema of a device."""

from dataclasses import dataclass

from shared.devices.registry import Downlink, RegisteredDevice, devices_table
from shared.devices.sessions import DeviceState, SessionStore
from shared.platform.clock import iso_time
from shared.platform.config import config


@dataclass(frozen=True, slots=True)
class DeviceView:
    """One device: its identity, its connection state, and the board and firmware that it last reported."""

    device_id: str
    name: str
    downlink: Downlink
    created_at: str
    connected: bool | None = None
    """None if the broker does not report presence."""
    changed_at: str | None = None
    disconnect_reason: str | None = None
    board: str | None = None
    firmware: str | None = None
    session_id: str | None = None
    last_answered_at: str | None = None
    """A device that is connected and has not answered for long may hang: its network answers without it."""


def device_state(device: RegisteredDevice) -> DeviceState:
    """Return a device's stored state."""
    return SessionStore(devices_table(), device.tenant_id, device.id).read()


def device_view(device: RegisteredDevice, state: DeviceState, *, connected: bool | None = None) -> DeviceView:
    """Return a device's view; `connected` overrides the state that lifecycle events reported."""
    presence, session = state.presence, state.session
    reported = presence.connected if presence else (False if config().data_plane else None)
    return DeviceView(
        device_id=device.id,
        name=device.name,
        downlink=device.downlink,
        created_at=device.created_at,
        connected=reported if connected is None else connected,
        changed_at=iso_time(presence.changed_at / 1000) if presence else None,
        disconnect_reason=presence.reason or None if presence else None,
        board=session.name if session else None,
        firmware=session.version if session else None,
        session_id=session.id if session else None,
        last_answered_at=iso_time(state.answered_at / 1000) if state.answered_at else None,
    )
