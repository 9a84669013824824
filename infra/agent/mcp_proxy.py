"""The MCP server of `kho mcp`: an MCP endpoint of a Kho server over STDIO, with this machine's files.

Requests are forwarded to the endpoint, so that tools, resources, prompts and errors are those of the endpoint. The
tools that read this machine's files, report progress or ask the user are run here, as `research-agent mcp` does.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from mcp.shared.inbound import encode_header_value
from mcp_types import (
    CallToolRequestParams,
    CompleteRequestParams,
    GetPromptRequestParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
)

from api.mcp_errors import formatted_error, is_handshake
from api.mcp_server import EVERYTHING, instructions_of
from infra.agent.backend import BackendError
from infra.agent.stdio_server import new_server
from shared.rpc.mcp_catalog import TOOLSETS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp.server.context import HandlerResult, ServerRequestContext
    from pydantic import BaseModel

    from infra.agent.managed_server import ManagedServerBackend
    from infra.agent.stdio_transport import StdioServer
    from infra.agent.tools import AgentTools

    Context = ServerRequestContext[Any, Any]

_FORWARDED: Final[Mapping[str, type[BaseModel]]] = {
    "tools/list": PaginatedRequestParams,
    "tools/call": CallToolRequestParams,
    "resources/list": PaginatedRequestParams,
    "resources/templates/list": PaginatedRequestParams,
    "resources/read": ReadResourceRequestParams,
    "prompts/list": PaginatedRequestParams,
    "prompts/get": GetPromptRequestParams,
    "completion/complete": CompleteRequestParams,
}
_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_OWN: Final = ("manage_collections", "ingest_documents", "augment_knowledge")


def proxy_server(backend: ManagedServerBackend, tools: AgentTools, toolset: str) -> StdioServer:
    """Return the server that forwards to the endpoint of `toolset`, or of all tools if it is empty."""
    subject = TOOLSETS[toolset].subject if toolset else EVERYTHING
    server = new_server("kho", instructions_of(subject), backend)
    path = f"/mcp/{toolset}" if toolset else "/mcp"
    proxy = _Proxy(backend, path)
    own = {tool.name: tool for tool in tools.list() if tool.name in _OWN and toolset in ("", "knowledge")}
    for tool in own.values():
        server.add_tool(tool)
    low_level = server._mcp_server  # noqa: SLF001 - FastMCP has no other way to answer a method
    call_own = low_level.get_request_handler("tools/call")
    assert call_own

    async def list_tools(context: Context, _params: BaseModel) -> HandlerResult:
        listed = await proxy.forward(context)
        for each in listed["tools"]:
            if each["name"] in own:
                each["inputSchema"] = own[each["name"]].parameters
        return listed

    async def call_tool(context: Context, params: CallToolRequestParams) -> HandlerResult:
        return await (call_own.handler(context, params) if params.name in own else proxy.forward(context))

    async def forward(context: Context, _params: BaseModel) -> HandlerResult:
        return await proxy.forward(context)

    handlers: dict[str, Any] = {"tools/list": list_tools, "tools/call": call_tool}
    for method, model in _FORWARDED.items():
        low_level.add_request_handler(method, model, handlers.get(method, forward))
    return server


class _Proxy:
    """A client of one MCP endpoint, which keeps no session."""

    def __init__(self, backend: ManagedServerBackend, path: str) -> None:
        self._backend = backend
        self._path = path

    async def forward(self, context: Context) -> dict[str, Any]:
        """Return the endpoint's result for the request of `context`, or raise its error."""
        method, params, revision = context.method, dict(context.params or {}), context.protocol_version
        try:
            return await asyncio.to_thread(self._send, method, params, revision)
        except BackendError as error:
            record = {"code": error.code, "message": error.message, "data": error.data}
            raise formatted_error(record, revision, not_found=False) from None

    def _send(self, method: str, params: dict[str, Any], revision: str) -> Any:
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": revision}
        if not is_handshake(revision):
            headers["mcp-method"] = method
            if method in _NAMED:
                headers["mcp-name"] = encode_header_value(params[_NAMED[method]])
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self._backend.server().send(self._path, message, headers)
