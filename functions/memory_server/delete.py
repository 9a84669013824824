"""memory-server/memory/delete: delete a conversation completely."""

from __future__ import annotations

from doors.direct import Caller, method
from memory_server import InConversation, conversations
from memory_server.results import Done


@method("memory-server/memory/delete", role="writer")
def handler(params: InConversation, caller: Caller) -> Done:
    """Delete the conversation, whether or not it exists."""
    conversations(caller).delete(params.conversation_id)
    return Done("deleted", params.conversation_id)
