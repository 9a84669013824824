"""memory-server/memory/clear: delete all messages of a conversation, which stays."""

from __future__ import annotations

from doors.direct import Caller, method
from memory_server import InConversation, conversations
from memory_server.results import Done
from shared.rpc.offers import Tool


@method(
    "memory-server/memory/clear",
    role="writer",
    tool=Tool(
        "Delete all messages",
        "removes",
        "Delete all messages and the summary of a conversation for good; the conversation itself stays, empty.",
    ),
)
def handler(params: InConversation, caller: Caller) -> Done:
    """Delete all messages and the summary; the conversation stays."""
    conversations(caller).clear(params.conversation_id)
    return Done("cleared", params.conversation_id)
