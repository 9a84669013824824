"""Devices of the caller's tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from shared.devices.mqtt.data_plane import data_plane
from shared.devices.registry import registry
from shared.platform.telemetry import logger
from shared.platform.ttl_cache import TtlCache
from shared.rpc.errors import Unavailable

if TYPE_CHECKING:
    from shared.devices.registry import RegisteredDevice
    from shared.rpc.caller import Caller

_CACHE_SECONDS: Final = 10.0
_cached_devices: Final[TtlCache[tuple[str, str], RegisteredDevice]] = TtlCache(_CACHE_SECONDS)


def require_device(caller: Caller, device_id: str) -> RegisteredDevice:
    """Return a device of the caller's tenant. Raise NotFound if there is none with this id."""
    return registry().require(caller.tenant_id, device_id)


def cached_device(caller: Caller, device_id: str) -> RegisteredDevice:
    """Return the device of this id from a short-lived cache, so that a call does not wait for the table."""
    key = caller.tenant_id, device_id
    return _cached_devices.get(key) or _cached_devices.put(key, require_device(caller, device_id))


def disconnect_device(caller: Caller, device_id: str) -> None:
    """Close the connection of a device that was revoked. Log a failure: the broker refuses its next connection."""
    _cached_devices.delete((caller.tenant_id, device_id))
    plane = data_plane()
    try:
        if plane:
            plane.disconnect(device_id)
    except Unavailable:
        logger.warning("revoked device not disconnected", extra={"device_id": device_id})
