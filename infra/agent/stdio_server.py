"""The MCP server over STDIO: research-agent's tools, resources and prompts for an editor, with this machine's files."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import anyio
from fastmcp.server.middleware import Middleware
from fastmcp.tools import ToolResult
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from infra.agent.elicitation import is_modern
from infra.agent.stdio_transport import StdioServer
from infra.agent.tools import AgentTools, CodedError
from research_agent import COLLECTIONS_URI, MCP_PROMPTS, MCP_RESOURCES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fastmcp import FastMCP
    from fastmcp.server.middleware import CallNext, MiddlewareContext

    from infra.agent.files.reader import FileReader
    from infra.agent.managed_server import ManagedServerBackend

_INSTRUCTIONS: Final = (
    "A knowledge base of documents. Make a collection with manage_collections, fill it with ingest_documents (files "
    "and folders of this machine) or augment_knowledge (a text), and search with query_knowledge_base."
)


class _ErrorCodes(Middleware):
    """Gives errors research-agent's codes: as JSON-RPC errors, or as results if the revision reserves those codes."""

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        try:
            return await call_next(context)
        except CodedError as coded:
            error = coded.error
        if not is_modern(context.fastmcp_context):
            raise MCPError(error.code, error.message, error.data) from None
        data = error.data | {"message": error.message}
        text = f"{data.get('code', error.code)}: {error.message} {data.get('guidance', '')}".strip()
        return ToolResult(content=[TextContent(type="text", text=text)], structured_content=data, is_error=True)


def run(backend: ManagedServerBackend, reader: FileReader, *, timeout: float, debug: bool) -> None:
    """Serve an editor until it closes the pipe. Logs go to the standard error."""
    logging.basicConfig(level=logging.DEBUG if debug else logging.WARNING)
    anyio.run(_server(backend, AgentTools(backend, reader, timeout)).serve)


def _server(backend: ManagedServerBackend, tools: AgentTools) -> StdioServer:
    @asynccontextmanager
    async def session(_server: FastMCP) -> AsyncIterator[None]:
        try:
            yield
        finally:
            # Close it with the session: threads that wait for the backend would otherwise keep the process alive.
            backend.close()

    mcp = StdioServer(
        "research-agent", _INSTRUCTIONS, middleware=[_ErrorCodes()], mask_error_details=True, lifespan=session
    )
    for tool in tools.list():
        mcp.add_tool(tool)
    _add_resources(mcp, tools)
    _add_prompts(mcp)
    return mcp


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


def _add_prompts(mcp: FastMCP) -> None:
    def refine_query(query: str) -> str:
        return _fill("refine_query", query=query)

    def extract_context(task: str) -> str:
        return _fill("extract_context", task=task)

    for prompt in MCP_PROMPTS:
        fill = {"refine_query": refine_query, "extract_context": extract_context}[prompt.name]
        mcp.prompt(fill, name=prompt.name, title=prompt.title, description=prompt.description)


def _fill(name: str, **arguments: str) -> str:
    text = next(each.text for each in MCP_PROMPTS if each.name == name)
    for argument, value in arguments.items():
        text = text.replace(f"{{{argument}}}", value)
    return text
