"""device-server: the tools of a fleet of ESP32 devices (seed 001)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field

from shared.config import config
from shared.devices.registry import registry
from shared.devices.remembered import Remembered
from shared.dynamodb import Table
from shared.rpc.method import WHOLE, Params

if TYPE_CHECKING:
    from shared.devices.registry import Device
    from shared.rpc.caller import Caller

DeviceId = Annotated[str, Field(min_length=1, max_length=128, examples=["esp32-7c9ebd"])]
Limit = Annotated[int, Field(ge=1, le=1000), WHOLE]
Cursor = Annotated[str, Field(min_length=1, max_length=4096)]

_RECENT_SECONDS: Final = 10.0
_recent: Final[Remembered[tuple[str, str], Device]] = Remembered(_RECENT_SECONDS)


class OfDevice(Params):
    """Parameters that name a device."""

    device_id: DeviceId


class Paged(Params):
    """Which part of a list."""

    limit: Limit = 100
    cursor: Cursor | None = None


def device_of(caller: Caller, device_id: str) -> Device:
    """The device of this id, which must be the caller's tenant's."""
    return registry().require(caller.tenant_id, device_id)


def device_to_call(caller: Caller, device_id: str) -> Device:
    """The device of this id as it was a few seconds ago at most: a call is not to wait for the store."""
    key = caller.tenant_id, device_id
    return _recent.get(key) or _recent.put(key, device_of(caller, device_id))


def table() -> Table:
    """Where what is known of devices lies."""
    return Table(config().devices_table)
