"""memory-server/memory/add_message: append one message to a conversation."""

from __future__ import annotations

from doors.direct import Caller, method
from memory_server import InConversation, conversations
from memory_server.results import Done
from shared.memory.models import Content, Role
from shared.rpc.offers import Tool


class AddMessage(InConversation):
    """The message and where it belongs."""

    role: Role
    content: Content


@method(
    "memory-server/memory/add_message",
    role="writer",
    tool=Tool(
        "Add a message",
        "adds",
        "Append one message to the end of a conversation; one that does not exist is created. Calling twice "
        "adds it twice.",
    ),
)
def handler(params: AddMessage, caller: Caller) -> Done:
    """Append one message; a conversation that does not exist is created."""
    conversations(caller).append(params.conversation_id, params.role, params.content)
    return Done("success", params.conversation_id)
