"""device-server: the tools of a fleet of ESP32 devices (seed 001)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field

from shared.devices.registry import registry
from shared.rpc.method import Params
from shared.ttl_cache import TtlCache

if TYPE_CHECKING:
    from shared.devices.registry import RegisteredDevice
    from shared.rpc.caller import Caller

DeviceId = Annotated[str, Field(min_length=1, max_length=128, examples=["esp32-7c9ebd"])]

_RECENT_SECONDS: Final = 10.0
_recent_devices: Final[TtlCache[tuple[str, str], RegisteredDevice]] = TtlCache(_RECENT_SECONDS)


class DeviceParams(Params):
    """Parameters that name a device."""

    device_id: DeviceId


def require_device(caller: Caller, device_id: str) -> RegisteredDevice:
    """The device of this id, which must be the caller's tenant's."""
    return registry().require(caller.tenant_id, device_id)


def recent_device(caller: Caller, device_id: str) -> RegisteredDevice:
    """The device of this id as it was a few seconds ago at most: a call is not to wait for the store."""
    key = caller.tenant_id, device_id
    return _recent_devices.get(key) or _recent_devices.put(key, require_device(caller, device_id))
