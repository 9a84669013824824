"""memory-server/memory/get_or_create: get an existing conversation or create a new one."""

from __future__ import annotations

from dataclasses import dataclass

from doors.direct import Caller, Params, method
from memory_server import conversations
from shared.memory.models import ConversationId
from shared.rpc.offers import Tool


class GetOrCreate(Params):
    """Which conversation; without an id, a new one."""

    conversation_id: ConversationId | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """The conversation, which exists."""

    conversation_id: str


@method(
    "memory-server/memory/get_or_create",
    role="writer",
    tool=Tool(
        "Start or find a conversation",
        "adds",
        "Get the conversation with this id, creating it if it does not exist; without an id, start a new one. "
        "Returns the conversation_id that the other memory tools take.",
    ),
)
def handler(params: GetOrCreate, caller: Caller) -> Conversation:
    """Get an existing conversation or create a new one."""
    return Conversation(conversations(caller).get_or_create(params.conversation_id))
