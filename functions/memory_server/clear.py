"""memory-server/memory/clear: delete all messages of a conversation and keep the conversation."""

from api.deployment import lambda_function, table
from api.handler import method
from memory_server import ConversationParams
from memory_server.stores import conversations
from shared.memory.models import ConversationResult
from shared.rpc.caller import Caller
from shared.rpc.mcp_catalog import McpTool


@lambda_function(table("Memory", "GetItem", "PutItem", "UpdateItem"))
@method(
    "memory-server/memory/clear",
    role="writer",
    example={"conversation_id": "chat_cleared"},
    tool=McpTool(
        "Delete all messages",
        "removes",
        "Delete all messages and the summary of a conversation permanently. The empty conversation remains.",
    ),
)
def handler(params: ConversationParams, caller: Caller) -> ConversationResult:
    """Delete all messages and the summary. Keep the conversation."""
    conversations(caller).clear(params.conversation_id)
    return ConversationResult("cleared", params.conversation_id)
