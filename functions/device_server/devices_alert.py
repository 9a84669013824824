"""device-server/devices/alert: show a text on a device's display and play a sound."""

from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from api.deployment import DEVICE_DOWNLINK, lambda_function, table
from api.handler import method
from device_server import DeviceParams
from device_server.devices import cached_device
from shared.devices import protocol
from shared.devices.mqtt.client_factory import device_client
from shared.rpc.caller import Caller
from shared.rpc.errors import NotFound, TooManyRequests, Unavailable
from shared.rpc.field_messages import worded
from shared.rpc.mcp_catalog import McpTool

_TEXT: Final = worded(r"^[^\x00]*[^\s\x00][^\x00]*$", "text that is not blank, without NUL")
_NAME: Final = worded(r"^[a-z0-9_]+$", "lower-case letters, digits and _")
_SECONDS: Final = 5.0


class AlertDevice(DeviceParams):
    """A device, and the alert that it shows."""

    message: Annotated[
        str,
        Field(description="the text", min_length=1, max_length=1024, pattern=_TEXT, examples=["Dinner is ready."]),
    ]
    status: Annotated[
        str, Field(description="the title", min_length=1, max_length=64, pattern=_TEXT, examples=["Kitchen"])
    ] = "Message"
    emotion: Annotated[
        str,
        Field(
            description="a face of the firmware, such as happy, sad or surprised",
            min_length=1,
            max_length=32,
            pattern=_NAME,
            examples=["happy"],
        ),
    ] = "neutral"


@dataclass(frozen=True, slots=True)
class SentAlert:
    """An alert that was sent. No device acknowledges it."""

    sent: bool


@lambda_function(table("Devices", "GetItem"), DEVICE_DOWNLINK)
@method(
    "device-server/devices/alert",
    role="operator",
    errors=(NotFound, Unavailable, TooManyRequests),
    example={"device_id": "kitchen", "message": "Dinner is ready.", "status": "Kitchen", "emotion": "happy"},
    tool=McpTool(
        "Alert a device",
        "acts",
        "Show a text on a device's display and play a sound, at any time: the device need not be in a conversation. "
        "The device does not confirm it.",
        open_world=True,
    ),
)
def handler(params: AlertDevice, caller: Caller) -> SentAlert:
    """Alert a device."""
    device = cached_device(caller, params.device_id)
    message = protocol.alert(params.status, params.message, params.emotion)
    rpc = device_client().rpc
    rpc.notify(device, message, rpc.clock() + _SECONDS)
    return SentAlert(sent=True)
