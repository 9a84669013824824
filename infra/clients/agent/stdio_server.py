"""The MCP server over STDIO: research-agent's tools, resources and prompts for an editor, with this machine's files."""

from __future__ import annotations

import logging
import sys
import threading
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import anyio
from fastmcp.exceptions import NotFoundError
from fastmcp.server.middleware import Middleware
from fastmcp.tools import ToolResult
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from api.mcp_errors import failure_result, formatted_error, is_handshake, protocol_error, unknown_name
from api.mcp_resources import McpResources, no_resource
from api.mcp_server import request_handlers
from api.mcp_tools import McpTools
from api.mcp_transport import McpRequestContext
from infra.clients.agent.backend import SERVER
from infra.clients.agent.stdio_transport import StdioServer
from infra.clients.agent.tools import CodedError
from infra.local.shutdown import GRACE_SECONDS, Shutdown
from research_agent import COLLECTIONS_URI, MCP_PROMPTS, MCP_RESOURCES
from shared.platform.version import VERSION
from shared.rpc.caller import LOCAL
from shared.rpc.errors import complete_message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fastmcp import FastMCP
    from fastmcp.server.middleware import CallNext, MiddlewareContext

    from api.mcp_server import Answer
    from infra.clients.agent.backend import BackendError
    from infra.clients.agent.managed_server import ManagedServerBackend
    from infra.clients.agent.stdio_transport import Context, RequestHandler
    from infra.clients.agent.tools import AgentTools

_AS_AT_ENDPOINTS: Final = ("resources/list", "resources/templates/list", "prompts/list", "prompts/get")
_UNCACHED: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_INSTRUCTIONS: Final = (
    "A knowledge base of documents. Make a collection with manage_collections, fill it with ingest_documents (files "
    "and folders of this machine) or augment_knowledge (a text), and search with query_knowledge_base."
)


class _ErrorCodes(Middleware):
    """Gives errors the codes and data that /mcp gives them.

    The failure of a tool is a result. With `protocol_errors`, it is a JSON-RPC error in the revisions that allow it.
    """

    def __init__(self, *, protocol_errors: bool) -> None:
        self._protocol_errors = protocol_errors

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        try:
            return await call_next(context)
        except NotFoundError:
            raise protocol_error(unknown_name("tool", context.message.name), SERVER, _revision(context)) from None
        except CodedError as coded:
            error = coded.error
        if self._protocol_errors and is_handshake(_revision(context)):
            raise MCPError(error.code, error.explanation, error.data) from None
        result = failure_of_backend(error)
        content, facts = [TextContent(**each) for each in result["content"]], result["structuredContent"]
        return ToolResult(content=content, structured_content=facts, is_error=True)

    async def on_read_resource(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        uri, revision = str(context.message.uri), _revision(context)
        try:
            return await call_next(context)
        except NotFoundError:
            raise protocol_error(no_resource(uri), "", revision) from None
        except CodedError as coded:
            error = coded.error
        not_found = str(error.data.get("code")).endswith("NOT_FOUND")
        data = error.data | ({"details": {**error.data["details"], "uri": uri}} if not_found else {})
        record = {"code": error.code, "message": error.explanation, "data": data}
        raise formatted_error(record, revision, not_found=not_found) from None


def failure_of_backend(error: BackendError) -> dict[str, Any]:
    """Return the result of a tool whose call failed with `error`."""
    facts = {"message": complete_message(error.message, error.data.get("details")), "number": error.code, **error.data}
    return failure_result(str(error.data.get("code", error.code)), error.explanation, facts)


def _revision(context: MiddlewareContext[Any]) -> str:
    assert context.fastmcp_context
    assert context.fastmcp_context.request_context
    return context.fastmcp_context.request_context.protocol_version


def run(server: StdioServer, backend: ManagedServerBackend, *, debug: bool) -> None:
    """Serve a client until it closes the pipe, or a signal ends the process. Logs go to the standard error."""
    logging.basicConfig(level=logging.DEBUG if debug else logging.WARNING)
    # A first start goes on in a child process when this one ends.
    shutdown = Shutdown(GRACE_SECONDS, sys.stderr, kills_children=False)

    def close() -> None:
        backend.close()
        shutdown.finish()

    # The thread that reads the pipe cannot be ended: the process ends without it.
    shutdown.end_gracefully(lambda: threading.Thread(target=close, daemon=True).start(), list)
    shutdown.watch_signals()
    anyio.run(server.serve)


def research_server(backend: ManagedServerBackend, tools: AgentTools) -> StdioServer:
    """Return the server of research-agent's tools, resources and prompts."""
    mcp = new_server("research-agent", _INSTRUCTIONS, backend, protocol_errors=True)
    for tool in tools.list():
        mcp.add_tool(tool)
    _add_resources(mcp, tools)
    for method, params, answer in request_handlers(McpTools([]), McpResources(MCP_RESOURCES, MCP_PROMPTS)):
        if method in _AS_AT_ENDPOINTS:
            mcp.answer(method, params, packaged_handler(answer))
    return mcp


def packaged_handler(answer: Answer) -> RequestHandler:
    """Return the handler of a request that this installation's catalog answers, as the user who has every role."""

    async def handle(context: Context, params: Any) -> dict[str, Any]:
        return _UNCACHED | answer(params, McpRequestContext(LOCAL, ""), context.protocol_version)

    return handle


def new_server(
    name: str, instructions: str, backend: ManagedServerBackend, *, protocol_errors: bool = False
) -> StdioServer:
    """Return a server without tools, which closes `backend` with its session.

    With `protocol_errors`, failures of tools are JSON-RPC errors in the revisions that allow them.
    """

    @asynccontextmanager
    async def session(_server: FastMCP) -> AsyncIterator[None]:
        try:
            yield
        finally:
            # Close it with the session: threads that wait for the backend would otherwise keep the process alive.
            backend.close()

    return StdioServer(
        name,
        instructions,
        version=VERSION,
        middleware=[_ErrorCodes(protocol_errors=protocol_errors)],
        mask_error_details=True,
        lifespan=session,
    )


def _add_resources(mcp: FastMCP, tools: AgentTools) -> None:
    async def read_named(collection_name: str) -> str:
        return await tools.read_resource(f"{COLLECTIONS_URI}/{quote(collection_name, safe='')}")

    for resource in MCP_RESOURCES:
        mcp.resource(
            resource.uri,
            name=resource.name,
            title=resource.title,
            description=resource.description,
            mime_type=resource.mime_type,
        )(read_named if resource.is_template else partial(tools.read_resource, resource.uri))
