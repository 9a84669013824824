"""memory-server: a chatbot's conversations (seed 002)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from shared.config import config
from shared.dynamodb import Table
from shared.memory.conversations import Conversations
from shared.memory.models import ConversationId
from shared.rpc.method import Params

if TYPE_CHECKING:
    from shared.rpc.caller import Caller

URI: Final = "memory://conversation/"

RESOURCES: Final = [
    {
        "uri": f"{URI}{{conversation_id}}",
        "name": "Conversation {conversation_id}",
        "description": "Conversation history for {conversation_id}",
        "mimeType": "application/json",
    }
]


class InConversation(Params):
    """Parameters that name a conversation."""

    conversation_id: ConversationId


def conversations(caller: Caller) -> Conversations:
    """The conversations of the caller's tenant."""
    return Conversations(Table(config().memory_table), caller.tenant_id)
