"""device-server/tools/call: run one of a device's tools, once."""

from typing import Annotated

from pydantic import Field

from api.deployment import DEVICE_MESSAGES, lambda_function, table
from api.handler import method
from device_server import DeviceParams
from device_server.devices import cached_device
from shared.devices.call_limits import DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS
from shared.devices.mqtt.client_factory import device_client
from shared.devices.tool_result import DeviceToolResult
from shared.rpc.caller import Caller
from shared.rpc.errors import Conflict, NotFound, OutOfTime, TooLarge, ToolFailed, TooManyRequests, Unavailable
from shared.rpc.mcp_catalog import McpTool
from shared.rpc.method import WHOLE, OpenObject


class CallDeviceTool(DeviceParams):
    """A tool of a device, its arguments, and the time to wait for the reply."""

    name: Annotated[str, Field(min_length=1, max_length=200, examples=["self.audio_speaker.set_volume"])]
    arguments: Annotated[OpenObject, Field(default_factory=dict)]
    timeout_ms: Annotated[int, Field(ge=1, le=MAX_TIMEOUT_MS), WHOLE] = DEFAULT_TIMEOUT_MS


@lambda_function(
    table("Devices", "BatchGetItem", "BatchWriteItem", "GetItem", "PutItem", "Query", "UpdateItem"),
    DEVICE_MESSAGES,
)
@method(
    "device-server/tools/call",
    role="operator",
    errors=(NotFound, Unavailable, OutOfTime, Conflict, ToolFailed, TooLarge, TooManyRequests),
    example={"device_id": "kitchen", "name": "self.get_device_status", "arguments": {}},
    tool=McpTool(
        "Call a device's tool",
        "acts",
        "Run one of a device's tools: switch a lamp on, open a gate. The call runs once or not at all; if no reply "
        "arrives in time, the error says whether it may have run. device_tools_list lists the tools.",
        name="device_tools_call",
        open_world=True,
        defaults={"timeout_ms": MAX_TIMEOUT_MS},
        returns_content=True,
    ),
)
def handler(params: CallDeviceTool, caller: Caller) -> DeviceToolResult:
    """Call a device's tool."""
    device = cached_device(caller, params.device_id)
    return device_client().call(device, params.name, params.arguments, params.timeout_ms)
