"""device-server/firmware/list: the firmware of the tenant's boards, and the boards that failed to install it."""

from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Final

from pydantic import Field

from api.deployment import lambda_function, table
from api.handler import method
from device_server import FirmwareView
from shared.devices.firmware_releases import firmware_releases
from shared.rpc import cursor as cursors
from shared.rpc.caller import Caller
from shared.rpc.cursor import PageParams

_MAX_FAILED: Final = 100


@dataclass(frozen=True, slots=True)
class FirmwarePage:
    """Firmware, ordered by board; `next_cursor` is set if more follows."""

    firmware: Annotated[list[FirmwareView], Field(description="the firmware of each kind of board")]
    next_cursor: str | None = None


@lambda_function(table("Devices", "Query"))
@method("device-server/firmware/list", role="reader", example={"limit": 10})
def handler(params: PageParams, caller: Caller) -> FirmwarePage:
    """List the firmware of the tenant's boards."""
    releases = firmware_releases(caller.tenant_id)
    after = cursors.decode_sort_key(params.cursor) if params.cursor else ""
    page = releases.after(after, params.limit + 1)
    views = [
        FirmwareView(each.board, each.version, each.url, each.set_at, list(islice(releases.failed(each), _MAX_FAILED)))
        for each in page[: params.limit]
    ]
    return FirmwarePage(views, cursors.encode(views[-1].board) if len(page) > params.limit else None)
