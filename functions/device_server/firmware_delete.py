"""device-server/firmware/delete: stop to offer firmware to the tenant's boards of a kind."""

from api.deployment import lambda_function, table
from api.handler import method
from device_server import BoardName, FirmwareView
from shared.devices.firmware_releases import firmware_releases
from shared.rpc.caller import Caller
from shared.rpc.errors import NotFound
from shared.rpc.method import Params


class DeleteFirmware(Params):
    """A kind of board."""

    board: BoardName


@lambda_function(table("Devices", "BatchWriteItem", "DeleteItem", "GetItem", "Query"))
@method(
    "device-server/firmware/delete",
    role="operator",
    errors=(NotFound,),
    example={"board": "old-board"},
)
def handler(params: DeleteFirmware, caller: Caller) -> FirmwareView:
    """Delete the firmware of a kind of board."""
    release = firmware_releases(caller.tenant_id).delete(params.board)
    return FirmwareView(release.board, release.version, release.url, release.set_at)
