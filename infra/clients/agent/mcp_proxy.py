"""The MCP server of `kho mcp`: an MCP endpoint of a Kho server over STDIO, with this machine's files.

Requests are forwarded to the endpoint, so that tools, resources, prompts and errors are those of the endpoint. The
tools that read this machine's files, report progress or ask the user are run here, as `research-agent mcp` does.

While this machine's server starts, the lists that no data changes come from the catalog of this installation: editors
wait for them before they show anything.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mcp.shared.inbound import encode_header_value

from api.mcp_errors import formatted_error, is_handshake
from api.mcp_resources import McpResources
from api.mcp_server import EVERYTHING, UNCHANGING, instructions_of, request_handlers
from api.mcp_tools import McpTools
from infra.clients.agent.backend import BackendError, EndpointError
from infra.clients.agent.stdio_server import failure_of_backend, new_server, packaged_handler
from shared.rpc.mcp_catalog import TOOLSETS, mcp_catalog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastmcp.tools import Tool
    from mcp.server.context import HandlerResult
    from mcp.shared.exceptions import MCPError

    from infra.clients.agent.managed_server import ManagedServerBackend
    from infra.clients.agent.stdio_transport import Context, RequestHandler, StdioServer
    from infra.clients.agent.tools import AgentTools

_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_OWN: Final = ("manage_collections", "ingest_documents", "augment_knowledge", "remove_document")


def proxy_server(backend: ManagedServerBackend, tools: AgentTools, toolset: str) -> StdioServer:
    """Return the server that forwards to the endpoint of `toolset`, or of all tools if it is empty."""
    subject = TOOLSETS[toolset].subject if toolset else EVERYTHING
    catalog = mcp_catalog().of_toolset(TOOLSETS[toolset]) if toolset else mcp_catalog()
    server = new_server("kho", instructions_of(subject), backend)
    own = {tool.name: tool for tool in tools.list() if tool.name in _OWN and toolset in ("", "knowledge")}
    for tool in own.values():
        server.add_tool(tool)
    call_own = server._mcp_server.get_request_handler("tools/call")  # noqa: SLF001 - FastMCP does not show it
    assert call_own
    proxy = _Proxy(backend, f"/mcp/{toolset}" if toolset else "/mcp", own, call_own.handler)
    resources = McpResources(catalog.resources, catalog.prompts)
    for method, model, answer in request_handlers(McpTools(catalog.tools), resources):
        server.answer(method, model, proxy.handler(method, packaged_handler(answer)))
    return server


class _Proxy:
    """A client of one MCP endpoint, which keeps no session. The tools `own` are run here."""

    def __init__(
        self, backend: ManagedServerBackend, path: str, own: Mapping[str, Tool], call_own: RequestHandler
    ) -> None:
        self._backend = backend
        self._path = path
        self._own = own
        self._call_own = call_own

    def handler(self, method: str, packaged: RequestHandler) -> RequestHandler:
        """Return the handler of a method; `packaged` answers it from the catalog of this installation."""
        match method:
            case "tools/list":
                return partial(self._list_tools, packaged)
            case "tools/call":
                return self._call_tool
            case _ if method in UNCHANGING:
                return partial(self._list, packaged)
        return self._forward

    async def _list(self, packaged: RequestHandler, context: Context, params: Any) -> Any:
        if await asyncio.to_thread(self._backend.start):
            return await self._forward(context, params)
        return await packaged(context, params)

    async def _list_tools(self, packaged: RequestHandler, context: Context, params: Any) -> dict[str, Any]:
        response: dict[str, Any] = await self._list(packaged, context, params)
        schemas = {name: {"inputSchema": tool.parameters} for name, tool in self._own.items()}
        return response | {"tools": [each | schemas.get(each["name"], {}) for each in response["tools"]]}

    async def _call_tool(self, context: Context, params: Any) -> HandlerResult:
        if params.name in self._own:
            return await self._call_own(context, params)
        try:
            return await self._send_on(context)
        except EndpointError as error:
            raise _protocol_error(error, context) from None
        except BackendError as error:  # no endpoint answered
            return {"resultType": "complete"} | failure_of_backend(error)

    async def _forward(self, context: Context, _params: Any) -> dict[str, Any]:
        """Return the endpoint's result for the request of `context`, or raise its error."""
        try:
            return await self._send_on(context)
        except BackendError as error:
            raise _protocol_error(error, context) from None

    async def _send_on(self, context: Context) -> dict[str, Any]:
        method, params, revision = context.method, dict(context.params or {}), context.protocol_version
        result: dict[str, Any] = await asyncio.to_thread(self._send, method, params, revision)
        return result

    def _send(self, method: str, params: dict[str, Any], revision: str) -> Any:
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": revision}
        if not is_handshake(revision):
            headers["mcp-method"] = method
            if method in _NAMED:
                headers["mcp-name"] = encode_header_value(params[_NAMED[method]])
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self._backend.server().send(self._path, message, headers)


def _protocol_error(error: BackendError, context: Context) -> MCPError:
    message = error.message if isinstance(error, EndpointError) else error.explanation
    record = {"code": error.code, "message": message, "data": error.data}
    return formatted_error(record, context.protocol_version, not_found=False)
