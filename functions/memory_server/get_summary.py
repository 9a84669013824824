"""memory-server/memory/get_summary: the summary of a conversation, if there is one."""

from api.deployment import lambda_function, table
from api.handler import method
from memory_server import ConversationParams
from memory_server.stores import conversations
from shared.memory.message_history import MessageHistory
from shared.memory.models import SummaryResult
from shared.rpc.caller import Caller
from shared.rpc.errors import NotFound
from shared.rpc.mcp_catalog import McpTool


@lambda_function(table("Memory", "GetItem"))
@method(
    "memory-server/memory/get_summary",
    role="reader",
    errors=(NotFound,),
    example={"conversation_id": "chat_garden"},
    tool=McpTool(
        "Read the summary",
        "reads",
        "Read the stored summary of a conversation. It is empty if there is none.",
    ),
)
def handler(params: ConversationParams, caller: Caller) -> SummaryResult:
    """Get the stored summary, or an empty string if there is none."""
    stored = MessageHistory(conversations(caller), params.conversation_id).summary()
    return SummaryResult(stored.text if stored else "")
