"""memory-server/memory/clear: delete all messages of a conversation, which stays."""

from __future__ import annotations

from api.handler import Caller, method
from memory_server import ConversationParams, conversations
from shared.memory.responses import ConversationResult
from shared.rpc.mcp_catalog import McpTool


@method(
    "memory-server/memory/clear",
    role="writer",
    tool=McpTool(
        "Delete all messages",
        "removes",
        "Delete all messages and the summary of a conversation for good; the conversation itself stays, empty.",
    ),
)
def handler(params: ConversationParams, caller: Caller) -> ConversationResult:
    """Delete all messages and the summary; the conversation stays."""
    conversations(caller).clear(params.conversation_id)
    return ConversationResult("cleared", params.conversation_id)
