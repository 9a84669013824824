"""awslabs' mcp-lambda-handler, which speaks MCP alone."""

import json
from typing import Any

from awslabs.mcp_lambda_handler import MCPLambdaHandler  # type: ignore[import-not-found]
from peers.storing import append  # type: ignore[import-not-found]

server = MCPLambdaHandler("peer", "1")


@server.tool()  # type: ignore[untyped-decorator]
def add_message(conversation_id: str, role: str, content: str) -> str:
    """Append one message."""
    append("acme", conversation_id, role, content)
    return json.dumps({"status": "success", "conversation_id": conversation_id})


def handler(event: dict[str, Any], context: Any) -> Any:
    """Answer the same event as the others, its body as a tool's arguments."""
    (name,) = server.tools
    params = {"name": name, "arguments": json.loads(event["body"])}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    return server.handle_request(event | {"httpMethod": "POST", "body": body}, context)
