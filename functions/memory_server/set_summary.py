"""memory-server/memory/set_summary: replace the summary of a conversation."""

from __future__ import annotations

from api.handler import Caller, method
from memory_server import ConversationParams, conversations
from shared.memory.message_history import MessageHistory
from shared.memory.models import SummaryText
from shared.memory.responses import ConversationResult
from shared.rpc.errors import NotFound
from shared.rpc.mcp_catalog import McpTool


class SetSummary(ConversationParams):
    """The summary of everything said so far; `compress` is accepted and ignored."""

    summary: SummaryText
    compress: bool | None = None


@method(
    "memory-server/memory/set_summary",
    role="writer",
    errors=(NotFound,),
    tool=McpTool(
        "Store a summary",
        "replaces",
        "Store the summary of everything said so far in a conversation, in place of the one before. The "
        "messages themselves stay.",
    ),
)
def handler(params: SetSummary, caller: Caller) -> ConversationResult:
    """Store the summary; the full history is kept."""
    history = MessageHistory(conversations(caller), params.conversation_id)
    history.set_summary(params.summary, covers=history.last_number)
    return ConversationResult("success", params.conversation_id)
