"""memory-server/memory/delete: delete a conversation completely."""

from api.deployment import lambda_function, table
from api.handler import method
from memory_server import ConversationParams
from memory_server.stores import conversations
from shared.memory.models import ConversationResult
from shared.rpc.caller import Caller
from shared.rpc.mcp_catalog import McpTool


@lambda_function(table("Memory", "DeleteItem", "GetItem", "PutItem"))
@method(
    "memory-server/memory/delete",
    role="writer",
    example={"conversation_id": "chat_deleted"},
    tool=McpTool(
        "Delete a conversation",
        "removes",
        "Delete a conversation with all its messages permanently. Succeeds if it does not exist, too.",
    ),
)
def handler(params: ConversationParams, caller: Caller) -> ConversationResult:
    """Delete the conversation, if it exists."""
    conversations(caller).delete(params.conversation_id)
    return ConversationResult("deleted", params.conversation_id)
