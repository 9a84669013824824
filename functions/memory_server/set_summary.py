"""memory-server/memory/set_summary: replace the summary of a conversation."""

from api.deployment import lambda_function, table
from api.handler import method
from memory_server import ConversationParams
from memory_server.stores import conversations
from shared.memory.models import ConversationResult, SummaryText
from shared.rpc.caller import Caller
from shared.rpc.errors import NotFound
from shared.rpc.mcp_catalog import McpTool


class SetSummary(ConversationParams):
    """The summary of the conversation so far; `compress` is ignored."""

    summary: SummaryText
    compress: bool | None = None


@lambda_function(table("Memory", "GetItem", "PutItem"))
@method(
    "memory-server/memory/set_summary",
    role="writer",
    errors=(NotFound,),
    example={"conversation_id": "chat_garden", "summary": "About a garden, and who waters it."},
    tool=McpTool(
        "Store a summary",
        "replaces",
        "Store the summary of a conversation so far, replacing the previous one. The messages themselves stay.",
    ),
)
def handler(params: SetSummary, caller: Caller) -> ConversationResult:
    """Store the summary. Keep all messages."""
    stored = conversations(caller)
    header = stored.require(params.conversation_id)
    stored.set_summary(header, params.summary, covers=header.last_number)
    return ConversationResult("success", params.conversation_id)
