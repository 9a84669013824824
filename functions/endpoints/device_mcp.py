"""POST /mcp/devices/{device_id}: MCP like `/mcp`, with the tools of one device."""

from functools import cache
from typing import Any, Final

from api.deployment import CREDENTIALS, MCP_SDK, lambda_function, mcp_routes
from api.mcp_errors import protocol_error, tool_failure
from api.mcp_sdk import (
    CallNext,
    CallToolRequestParams,
    HandlerResult,
    PaginatedRequestParams,
    ServerMiddleware,
    ServerRequestContext,
)
from api.mcp_server import RequestHandler, build_server, request_context
from api.mcp_tools import with_structured_value
from api.mcp_transport import McpRequestContext, McpTransport
from endpoints.mcp import handle_message
from shared.rpc.catalogue import catalogue
from shared.rpc.errors import KhoError
from shared.rpc.mcp_catalog import mcp_catalog

SERVER: Final = "device-server"
GET: Final = f"{SERVER}/devices/get"
LIST: Final = f"{SERVER}/tools/list"
CALL: Final = f"{SERVER}/tools/call"
_INSTRUCTIONS: Final = (
    "One device and its own tools. A call runs once or not at all. If no reply comes in time, the error says whether "
    "the call may have run: find out before you call again."
)
_PAGE: Final = 1000


@lambda_function(
    CREDENTIALS,
    MCP_SDK,
    memory=1024,
    timeout=28,
    invokes=(GET, LIST, CALL),
    routes=mcp_routes("/mcp/devices/{device_id}"),
)
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Answer one MCP message."""
    return handle_message(event, _transport())


@cache
def _transport() -> McpTransport:
    answers: list[RequestHandler] = [
        ("tools/list", PaginatedRequestParams, _list_tools),
        ("tools/call", CallToolRequestParams, _call_tool),
    ]
    return McpTransport(build_server(answers, _INSTRUCTIONS, lambda _name: None, (), _RequireDevice()))


class _RequireDevice(ServerMiddleware[Any]):
    """Refuses the handshake for a device that does not exist or belongs to another tenant."""

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method in ("initialize", "server/discover"):
            _invoke_method(GET, {}, request_context(ctx))
        return await call_next(ctx)


def _list_tools(params: PaginatedRequestParams, context: McpRequestContext, revision: str) -> dict[str, Any]:
    """List the device's tools under names that models' interfaces take. List none if the role allows no call."""
    if not context.caller.holds(catalogue().methods[CALL].role):
        return {"tools": []}
    query = {"limit": _PAGE} | ({"cursor": params.cursor} if params.cursor is not None else {})
    try:
        tools = _invoke_method(LIST, query, context)
    except KhoError as error:
        raise protocol_error(error, SERVER, revision) from None
    page: dict[str, Any] = {"tools": [_describe(tool) for tool in tools["tools"]]}
    if "next_cursor" in tools:
        page["nextCursor"] = tools["next_cursor"]
    return page | ({"_meta": {"incomplete": tools["problem"]}} if "problem" in tools else {})


def _describe(tool: dict[str, Any]) -> dict[str, Any]:
    described = {
        "name": tool["alias"],
        "title": tool["name"],
        "description": tool["description"],
        "inputSchema": tool["inputSchema"] | {"type": "object"},
    }
    return described | ({"annotations": tool["annotations"]} if "annotations" in tool else {})


def _call_tool(params: CallToolRequestParams, context: McpRequestContext, _revision: str) -> dict[str, Any]:
    """Call the device's tool; its failure is a result in every revision."""
    call = {"name": params.name, "arguments": params.arguments or {}}
    try:
        return with_structured_value(_invoke_method(CALL, _call_defaults() | call, context))
    except KhoError as error:
        return tool_failure(error, SERVER)


@cache
def _call_defaults() -> dict[str, Any]:
    """Return the parameters that `device_tools_call` has by default at `/mcp`."""
    return next(each.defaults for each in mcp_catalog().tools if each.method == CALL)


def _invoke_method(method: str, params: dict[str, Any], context: McpRequestContext) -> dict[str, Any]:
    entry = catalogue().methods[method]
    result: dict[str, Any] = context.invoke(entry, params | {"device_id": context.device_id})["result"]
    return result
