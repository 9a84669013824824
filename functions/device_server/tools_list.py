"""device-server/tools/list: the tools of one device, from the stored catalogue if there is one."""

from dataclasses import dataclass
from typing import Any

from api.deployment import DEVICE_MESSAGES, lambda_function, table
from api.handler import method
from device_server import DeviceParams
from device_server.devices import require_device
from shared.devices.mqtt.client_factory import device_client
from shared.rpc import cursor as cursors
from shared.rpc.caller import Caller
from shared.rpc.cursor import PageParams
from shared.rpc.errors import NotFound, OutOfTime, ToolFailed, Unavailable
from shared.rpc.mcp_catalog import McpTool
from shared.rpc.response_size import MAX_PAGE_BYTES, answer_bytes


class ListTools(DeviceParams, PageParams):
    """A device and a page of its tools, with its user-only tools if requested."""

    with_user_tools: bool = False


@dataclass(frozen=True, slots=True)
class ToolView:
    """One tool, as the device describes it; `alias` is its name without the dots that models' interfaces reject."""

    name: str
    alias: str
    description: str
    inputSchema: dict[str, Any]  # noqa: N815 - MCP's own name
    annotations: dict[str, Any] | None = None
    user_only: bool | None = None


@dataclass(frozen=True, slots=True)
class DeviceToolPage:
    """The device's tools; if not `complete`, `problem` says why some are missing."""

    tools: list[ToolView]
    complete: bool
    problem: str | None = None
    next_cursor: str | None = None


@lambda_function(
    table("Devices", "BatchGetItem", "BatchWriteItem", "GetItem", "PutItem", "Query", "UpdateItem"),
    DEVICE_MESSAGES,
)
@method(
    "device-server/tools/list",
    role="reader",
    errors=(NotFound, Unavailable, OutOfTime, ToolFailed),
    example={"device_id": "kitchen"},
    tool=McpTool(
        "List a device's tools",
        "reads",
        "List a device's tools: the name and the arguments of each. Read this before calling one with "
        "device_tools_call.",
        name="device_tools_list",
    ),
)
def handler(params: ListTools, caller: Caller) -> DeviceToolPage:
    """List a device's tools."""
    device = require_device(caller, params.device_id)
    (start,) = cursors.decode(params.cursor, int) if params.cursor else (0,)
    catalogue, tools = device_client().tools(device, with_user_tools=params.with_user_tools)
    if start > len(tools):
        raise cursors.stale()
    views: list[ToolView] = []
    remaining_bytes = MAX_PAGE_BYTES
    for tool in tools[start : start + params.limit]:
        remaining_bytes -= answer_bytes([tool.name, tool.description, tool.input_schema, tool.annotations]) + 200
        if remaining_bytes < 0 and views:
            break
        views.append(
            ToolView(
                name=tool.name,
                alias=catalogue.aliases[tool.name],
                description=tool.description,
                inputSchema=tool.input_schema,
                annotations=tool.annotations or None,
                user_only=tool.user_only or None,
            )
        )
    next_start = start + len(views)
    return DeviceToolPage(
        tools=views,
        complete=catalogue.complete,
        problem=catalogue.problem or None,
        next_cursor=cursors.encode(next_start) if next_start < len(tools) else None,
    )
