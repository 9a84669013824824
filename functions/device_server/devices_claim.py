"""device-server/devices/claim: take over a board by the code that it shows."""

from typing import Annotated

from pydantic import Field

from api.deployment import DEVICE_DISCONNECTION, lambda_function, table, variables
from api.handler import method
from device_server import DeviceId
from device_server.devices import disconnect_device, require_device
from shared.access.attempt_limits import wrong_claims
from shared.devices.activation_codes import activation_codes
from shared.devices.registry import registry
from shared.devices.schemas import DeviceView, device_state, device_view
from shared.rpc.caller import Caller
from shared.rpc.errors import Conflict, NotFound, TooManyRequests
from shared.rpc.field_messages import worded
from shared.rpc.mcp_catalog import McpTool
from shared.rpc.method import Params
from shared.rpc.names import refuse_deceptive_name


class ClaimDevice(Params):
    """The code that a board shows, and its name."""

    code: Annotated[str, Field(pattern=worded(r"^[0-9]{6}$", "six digits"), examples=["482913"])]
    name: Annotated[str, Field(min_length=1, max_length=128, pattern=worded(r"\S", "not blank"), examples=["Kitchen"])]
    replaces: DeviceId | None = None


@lambda_function(
    table("Devices", "BatchGetItem", "DeleteItem", "GetItem", "PutItem", "UpdateItem"),
    DEVICE_DISCONNECTION,
    variables("KHO_ADDRESS_WAITING_BOARDS", "KHO_WRONG_CLAIMS_A_MINUTE", "KHO_WRONG_CLAIMS_AN_HOUR"),
)
@method(
    "device-server/devices/claim",
    role="operator",
    errors=(NotFound, Conflict, TooManyRequests),
    example={"code": "482913", "name": "Kitchen"},
    tool=McpTool(
        "Claim a device",
        "acts",
        "Take over a board by the six digits that it shows and speaks. The board connects within seconds. 'replaces' "
        "names a device that this board takes the place of, and that is released.",
    ),
)
def handler(params: ClaimDevice, caller: Caller) -> DeviceView:
    """Claim a board."""
    refuse_deceptive_name(params.name, "name")
    codes, devices = activation_codes(), registry()
    if params.replaces:
        require_device(caller, params.replaces)
    with wrong_claims().attempt(caller.tenant_id):
        waiting = codes.find(params.code)
        if waiting is None:
            raise NotFound("No board shows this code.", guidance="Claim the code that the board shows now.")
    removal = codes.removal(waiting)
    device = devices.claim(caller.tenant_id, waiting, removal, name=params.name, replaces=params.replaces or "")
    if params.replaces:
        disconnect_device(caller, params.replaces)
    return device_view(device, device_state(device))
