"""device-server: the tools of a fleet of ESP32 devices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field

from shared.devices.registry import registry
from shared.platform.telemetry import logger
from shared.platform.ttl_cache import TtlCache
from shared.rpc.errors import Unavailable
from shared.rpc.field_messages import worded
from shared.rpc.method import Params

if TYPE_CHECKING:
    from shared.devices.registry import RegisteredDevice
    from shared.rpc.caller import Caller

DeviceId = Annotated[str, Field(min_length=1, max_length=128, examples=["esp32-7c9ebd"])]
BoardName = Annotated[
    str,
    Field(
        max_length=64,
        pattern=worded(r"^[A-Za-z0-9][A-Za-z0-9._+-]*$", "letters, digits and . _ + -"),
        examples=["bread-compact-wifi"],
        description="the kind of board, as its User-Agent begins and `devices/list` shows it",
    ),
]

_CACHE_SECONDS: Final = 10.0
_cached_devices: Final[TtlCache[tuple[str, str], RegisteredDevice]] = TtlCache(_CACHE_SECONDS)


class DeviceParams(Params):
    """Parameters that name a device."""

    device_id: DeviceId


@dataclass(frozen=True, slots=True)
class FirmwareView:
    """The firmware that the tenant's boards of a kind are offered."""

    board: Annotated[str, Field(description="the kind of board, as its User-Agent begins")]
    version: Annotated[str, Field(description="boards of an older version are offered this one")]
    url: Annotated[str, Field(description="the address of the application's image")]
    set_at: Annotated[str, Field(description="the time at which it was set")]
    failed_devices: Annotated[
        list[str],
        Field(
            description="the first 100 boards that failed three times to install it, and are not offered it any more"
        ),
    ] = field(default_factory=list)


def require_device(caller: Caller, device_id: str) -> RegisteredDevice:
    """Return a device of the caller's tenant. Raise NotFound if there is none with this id."""
    return registry().require(caller.tenant_id, device_id)


def cached_device(caller: Caller, device_id: str) -> RegisteredDevice:
    """Return the device of this id from a short-lived cache, so that a call does not wait for the table."""
    key = caller.tenant_id, device_id
    return _cached_devices.get(key) or _cached_devices.put(key, require_device(caller, device_id))


def disconnect_device(caller: Caller, device_id: str) -> None:
    """Close the connection of a device that was revoked. Log a failure: the broker refuses its next connection."""
    from shared.devices.mqtt.client_factory import data_plane

    _cached_devices.delete((caller.tenant_id, device_id))
    plane = data_plane()
    try:
        if plane:
            plane.disconnect(device_id)
    except Unavailable:
        logger.warning("revoked device not disconnected", extra={"device_id": device_id})
