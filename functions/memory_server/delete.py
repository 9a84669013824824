"""memory-server/memory/delete: delete a conversation completely."""

from __future__ import annotations

from doors.direct import Caller, method
from memory_server import InConversation, conversations
from memory_server.results import Done
from shared.rpc.offers import Tool


@method(
    "memory-server/memory/delete",
    role="writer",
    tool=Tool(
        "Delete a conversation",
        "removes",
        "Delete a conversation with all its messages for good. Deleting one that does not exist succeeds too.",
    ),
)
def handler(params: InConversation, caller: Caller) -> Done:
    """Delete the conversation, whether or not it exists."""
    conversations(caller).delete(params.conversation_id)
    return Done("deleted", params.conversation_id)
