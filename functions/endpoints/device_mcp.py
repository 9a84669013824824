"""POST /mcp/devices/{device_id}: MCP as at `/mcp`, with one device's own tools as the tools."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from mcp.server.context import ServerMiddleware
from mcp_types import CallToolRequestParams, PaginatedRequestParams

from api.mcp_errors import is_handshake, protocol_error, tool_error
from api.mcp_server import build_server, request_context
from api.mcp_tools import require_fitting
from api.mcp_transport import McpTransport
from endpoints.mcp import handle_message
from shared.rpc.catalogue import catalogue
from shared.rpc.errors import KhoError
from shared.rpc.invoke import invoke
from shared.rpc.strict_json import compact

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from api.mcp_server import RequestHandler
    from api.mcp_transport import McpRequestContext

SERVER: Final = "device-server"
GET: Final = f"{SERVER}/devices/get"
LIST: Final = f"{SERVER}/tools/list"
CALL: Final = f"{SERVER}/tools/call"
_INSTRUCTIONS: Final = (
    "One device and its own tools. A call is done once or not at all; where no answer comes in time, the error says "
    "whether it may have been done: find that out before you call again."
)
_PAGE: Final = 1000
_KINDS: Final = ("text", "image")


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
    """Refuses to begin with a device that does not exist, or is another tenant's."""

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method in ("initialize", "server/discover"):
            _invoke_method(GET, {}, request_context(ctx))
        return await call_next(ctx)


def _list_tools(params: PaginatedRequestParams, visit: McpRequestContext, revision: str) -> dict[str, Any]:
    """The device's tools, under names that models' interfaces take; none where the caller's role allows no call."""
    if not visit.caller.holds(catalogue().methods[CALL].role):
        return {"tools": []}
    asked = {"limit": _PAGE} | ({"cursor": params.cursor} if params.cursor is not None else {})
    try:
        listed = _invoke_method(LIST, asked, visit)
    except KhoError as error:
        raise protocol_error(error, SERVER, revision) from None
    page: dict[str, Any] = {"tools": [_described(tool) for tool in listed["tools"]]}
    if "next_cursor" in listed:
        page["nextCursor"] = listed["next_cursor"]
    return page | ({"_meta": {"incomplete": listed["problem"]}} if "problem" in listed else {})


def _described(tool: dict[str, Any]) -> dict[str, Any]:
    described = {
        "name": tool["alias"],
        "title": tool["name"],
        "description": tool["description"],
        "inputSchema": tool["inputSchema"] | {"type": "object"},
    }
    return described | ({"annotations": tool["annotations"]} if "annotations" in tool else {})


def _call_tool(params: CallToolRequestParams, visit: McpRequestContext, revision: str) -> dict[str, Any]:
    """What the device's tool gives; its failure as the revision says it."""
    try:
        result = _invoke_method(CALL, {"name": params.name, "arguments": params.arguments or {}}, visit)
    except KhoError as error:
        if is_handshake(revision):
            raise protocol_error(error, SERVER, revision) from None
        return tool_error(error)
    return require_fitting({"content": [_part(part) for part in result["content"]], "isError": result["isError"]})


def _part(part: dict[str, Any]) -> dict[str, Any]:
    """Content as MCP has it; what a device has made up is handed on as text."""
    return part if part["type"] in _KINDS else {"type": "text", "text": compact(part)}


def _invoke_method(method: str, params: dict[str, Any], visit: McpRequestContext) -> dict[str, Any]:
    entry = catalogue().methods[method]
    result: dict[str, Any] = invoke(
        entry.function, method, params | {"device_id": visit.device_id}, visit.caller, visit.correlation_id
    )
    return result
