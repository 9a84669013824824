"""device-server: the tools of a fleet of ESP32 devices."""

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from shared.rpc.field_messages import worded
from shared.rpc.method import Params

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
