"""device-server/tools/call: have a device run one of its tools, once."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from device_server import OfDevice, device_to_call
from device_server.talking import talks
from doors.direct import Caller, method
from shared.devices.content import ToolResult
from shared.devices.talks import DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS
from shared.rpc.errors import Conflict, NotFound, OutOfTime, TooLarge, ToolFailed, TooManyRequests, Unavailable
from shared.rpc.method import WHOLE, OpenObject
from shared.rpc.offers import Tool


class CallTool(OfDevice):
    """Which tool of which device, what it is given, and how long to wait for it."""

    name: Annotated[str, Field(min_length=1, max_length=200, examples=["self.audio_speaker.set_volume"])]
    arguments: Annotated[OpenObject, Field(default_factory=dict)]
    timeout_ms: Annotated[int, Field(ge=1, le=MAX_TIMEOUT_MS), WHOLE] = DEFAULT_TIMEOUT_MS


@method(
    "device-server/tools/call",
    role="operator",
    errors=(NotFound, Unavailable, OutOfTime, Conflict, ToolFailed, TooLarge, TooManyRequests),
    tool=Tool(
        "Call a device's tool",
        "acts",
        "Have a device run one of its tools: a lamp goes on, a door opens. It is done once or not at all, and where no "
        "answer comes in time the error says whether it may have been done. device_tools_list names the tools.",
        name="device_tools_call",
        open_world=True,
    ),
)
def handler(params: CallTool, caller: Caller) -> ToolResult:
    """Call a device's tool."""
    device = device_to_call(caller, params.device_id)
    return talks().call(device, params.name, params.arguments, params.timeout_ms)
