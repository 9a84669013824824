"""memory-server/memory/get_all_messages: every message of a conversation, for display."""

from api.deployment import lambda_function, table
from api.handler import method
from memory_server import MessagePageParams
from memory_server.stores import conversations
from shared.memory.message_history import MessageHistory
from shared.memory.models import MessagePage
from shared.rpc.caller import Caller
from shared.rpc.errors import NotFound
from shared.rpc.mcp_catalog import McpTool


@lambda_function(table("Memory", "GetItem", "Query"))
@method(
    "memory-server/memory/get_all_messages",
    role="reader",
    errors=(NotFound,),
    example={"conversation_id": "chat_garden"},
    tool=McpTool(
        "Read a whole conversation",
        "reads",
        "Read every message of a conversation, oldest first. Set 'limit' for pages. If 'next_cursor' is "
        "returned, call again with it as 'cursor'.",
    ),
)
def handler(params: MessagePageParams, caller: Caller) -> MessagePage:
    """Get all messages, oldest first, page by page."""
    return MessageHistory(conversations(caller), params.conversation_id).page(params.limit, params.cursor)
