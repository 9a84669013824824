"""memory-server/memory/get_context: the most recent messages, as context for a model."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from api.deployment import lambda_function, table, variables
from api.handler import method
from memory_server import ConversationParams
from memory_server.stores import conversations
from shared.memory.message_history import MessageHistory
from shared.memory.models import ChatMessage
from shared.platform.config import config
from shared.rpc.caller import Caller
from shared.rpc.errors import NotFound
from shared.rpc.mcp_catalog import McpTool
from shared.rpc.method import WHOLE


class GetContext(ConversationParams):
    """The conversation, and the maximum number of messages, which KEEP_RECENT_MESSAGES caps."""

    max_messages: Annotated[int, Field(ge=1, le=2**31 - 1), WHOLE] | None = None


@dataclass(frozen=True, slots=True)
class MessageContext:
    """The most recent messages, oldest first."""

    messages: list[ChatMessage]


@lambda_function(table("Memory", "GetItem", "Query"), variables("KEEP_RECENT_MESSAGES"))
@method(
    "memory-server/memory/get_context",
    role="reader",
    errors=(NotFound,),
    example={"conversation_id": "chat_garden", "max_messages": 6},
    tool=McpTool(
        "Read recent messages",
        "reads",
        "Read the last few messages of a conversation, oldest first: the context for its next turn. "
        "Its summary covers older ones (memory_get_summary).",
    ),
)
def handler(params: GetContext, caller: Caller) -> MessageContext:
    """Get the last messages of a conversation, oldest first."""
    keep_recent = config().keep_recent_messages
    history = MessageHistory(conversations(caller), params.conversation_id)
    return MessageContext(history.recent(min(params.max_messages or keep_recent, keep_recent)))
