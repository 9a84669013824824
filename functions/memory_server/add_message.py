"""memory-server/memory/add_message: append one message to a conversation."""

from __future__ import annotations

from doors.direct import Caller, method
from memory_server import InConversation, conversations
from memory_server.results import Done
from shared.memory.models import Content, Role


class AddMessage(InConversation):
    """The message and where it belongs."""

    role: Role
    content: Content


@method("memory-server/memory/add_message", role="writer")
def handler(params: AddMessage, caller: Caller) -> Done:
    """Append one message; a conversation that does not exist is created."""
    conversations(caller).append(params.conversation_id, params.role, params.content)
    return Done("success", params.conversation_id)
