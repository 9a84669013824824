"""memory-server/memory/get_old_messages: the messages to summarize: all but the recent ones."""

from api.deployment import lambda_function, table, variables
from api.handler import method
from memory_server import MessagePageParams
from memory_server.stores import conversations
from shared.memory.message_history import MessageHistory
from shared.memory.models import OldMessages
from shared.platform.config import config
from shared.rpc.caller import Caller
from shared.rpc.errors import NotFound
from shared.rpc.mcp_catalog import McpTool


@lambda_function(table("Memory", "GetItem", "Query"), variables("COMPRESS_AFTER_SUMMARY", "KEEP_RECENT_MESSAGES"))
@method(
    "memory-server/memory/get_old_messages",
    role="reader",
    errors=(NotFound,),
    example={"conversation_id": "chat_garden"},
    tool=McpTool(
        "Read messages to summarise",
        "reads",
        "Read the messages to summarise: those before the recent ones that no summary covers yet. "
        "'total_count' counts all messages of the conversation.",
    ),
)
def handler(params: MessagePageParams, caller: Caller) -> OldMessages:
    """Get the messages before the recent ones. COMPRESS_AFTER_SUMMARY omits those that the summary covers."""
    settings = config()
    return MessageHistory(conversations(caller), params.conversation_id).old(
        settings.keep_recent_messages,
        params.limit,
        params.cursor,
        leave_out_summarized=settings.compress_after_summary,
    )
