"""POST /mcp/recall-kit: MCP like `/mcp` without credentials, with recall-kit's tools and prompts alone."""

from functools import cache
from typing import Any

from api.deployment import CREDENTIALS, MCP_SDK, lambda_function, mcp_routes
from api.error_formats import RECALL_KIT
from api.mcp_server import server_for_catalog
from api.mcp_transport import McpTransport
from endpoints.mcp import handle_message
from shared.rpc.mcp_catalog import mcp_catalog


@lambda_function(
    CREDENTIALS,
    MCP_SDK,
    memory=1024,
    timeout=28,
    invokes=(
        "recall-kit/query_experiences",
        "recall-kit/submit_experience",
        "recall-kit/get_experience",
    ),
    routes=mcp_routes("/mcp/recall-kit"),
    concurrency="AnonymousConcurrency",
)
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Answer one MCP message."""
    return handle_message(event, _transport(), open_to_all=True)


@cache
def _transport() -> McpTransport:
    return McpTransport(server_for_catalog(mcp_catalog().of(f"{RECALL_KIT}/")))
