"""POST /mcp/recall-kit: MCP like `/mcp` without credentials, with recall-kit's tools and prompts alone."""

from __future__ import annotations

from functools import cache
from typing import Any

from api.error_formats import RECALL_KIT
from api.mcp_server import server_for_catalog
from api.mcp_transport import McpTransport
from endpoints.mcp import handle_message
from shared.rpc.mcp_catalog import mcp_catalog


def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Answer one MCP message."""
    return handle_message(event, _transport(), open_to_all=True)


@cache
def _transport() -> McpTransport:
    return McpTransport(server_for_catalog(mcp_catalog().of(RECALL_KIT)))
