"""memory-server: a chatbot's conversations (seed 002)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from shared.config import config
from shared.dynamodb import Table
from shared.memory.conversations import Conversations
from shared.memory.models import ConversationId
from shared.rpc.method import Params
from shared.rpc.offers import Argument, Prompt, Resource

if TYPE_CHECKING:
    from shared.rpc.caller import Caller

URI: Final = "memory://conversation/"

# Seed 002's capabilities show none, though models are offered its methods at the MCP doors.
TOOLS: Final[list[object]] = []

RESOURCES: Final = [
    {
        "uri": f"{URI}{{conversation_id}}",
        "name": "Conversation {conversation_id}",
        "description": "Conversation history for {conversation_id}",
        "mimeType": "application/json",
    }
]

MCP_RESOURCES: Final = [
    Resource(
        uri=f"{URI}{{conversation_id}}",
        name="conversation",
        title="Conversation",
        description="A conversation's messages, oldest first, and its summary, as JSON.",
        read="memory-server/resources/read",
        listing="memory-server/resources/list",
    )
]
MCP_PROMPTS: Final = [
    Prompt(
        name="summarize_conversation",
        title="Summarise a conversation",
        description="Write the summary that stands for a conversation's older messages.",
        text=(
            "Summarise the conversation below so that it can go on without its older messages: who wants what, what "
            "was found, decided and promised, and what is still open. Build on the summary that it has, if any. Write "
            "in the language with the code '{language}', in at most 200 words, and nothing but the summary. Then store "
            "it with memory_set_summary, for the conversation '{conversation_id}'."
        ),
        arguments=[
            Argument("conversation_id", "The conversation to summarise.", required=True),
            Argument("language", "The code of the language to write in: vi or en.", default="vi"),
        ],
        resource=f"{URI}{{conversation_id}}",
    )
]


class InConversation(Params):
    """Parameters that name a conversation."""

    conversation_id: ConversationId


def conversations(caller: Caller) -> Conversations:
    """The conversations of the caller's tenant."""
    return Conversations(Table(config().memory_table), caller.tenant_id)
