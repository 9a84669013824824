"""device-server/firmware/set: offer firmware to boards of a kind at each check-in while theirs is older."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from api.deployment import lambda_function, table
from api.handler import method
from device_server import BoardName, FirmwareView
from shared.devices.firmware_releases import firmware_releases, url_problem, version_problem
from shared.platform.config import config
from shared.rpc.caller import Caller
from shared.rpc.errors import FieldProblem, InvalidParams
from shared.rpc.field_messages import worded
from shared.rpc.method import Params


class SetFirmware(Params):
    """A kind of board, and the version and URL of its firmware."""

    board: BoardName
    version: Annotated[
        str,
        Field(
            max_length=32,
            pattern=worded(r"^[0-9]+(\.[0-9]+)*$", "digits and dots"),
            examples=["2.4.3"],
            description="the version that the firmware says of itself: digits and dots",
        ),
    ]
    url: Annotated[
        str,
        Field(
            max_length=1024,
            pattern=worded(r"^[!-~]+$", "visible ASCII characters"),
            examples=["https://files.example.com/xiaozhi-2.4.3.bin"],
            description="the https:// address of the application's image, which boards call without any credentials; "
            "on one machine also `/firmware/{file}`, a file in the data folder's `firmware`",
        ),
    ]


@lambda_function(table("Devices", "BatchWriteItem", "PutItem", "Query"))
@method(
    "device-server/firmware/set",
    role="operator",
    example={
        "board": "bread-compact-wifi",
        "version": "2.4.3",
        "url": "https://files.example.com/xiaozhi-2.4.3.bin",
    },
)
def handler(params: SetFirmware, caller: Caller) -> FirmwareView:
    """Set the firmware of a kind of board."""
    folder = Path(config().firmware_folder) if config().firmware_folder else None
    problems = {"version": version_problem(params.version), "url": url_problem(params.url, folder)}
    if any(problems.values()):
        raise InvalidParams(*(FieldProblem(field=name, message=each) for name, each in problems.items() if each))
    release = firmware_releases(caller.tenant_id).set(params.board, params.version, params.url)
    return FirmwareView(release.board, release.version, release.url, release.set_at)
