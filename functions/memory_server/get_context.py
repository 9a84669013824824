"""memory-server/memory/get_context: the most recent messages, for a model to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from doors.direct import Caller, method
from memory_server import InConversation, conversations
from shared.config import config
from shared.memory.histories import History
from shared.memory.models import Message
from shared.rpc.errors import NotFound
from shared.rpc.method import WHOLE
from shared.rpc.offers import Tool


class GetContext(InConversation):
    """How many messages at most; KEEP_RECENT_MESSAGES is the most there is."""

    max_messages: Annotated[int, Field(ge=1, le=2**31 - 1), WHOLE] | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """The most recent messages, oldest first."""

    messages: list[Message]


@method(
    "memory-server/memory/get_context",
    role="reader",
    errors=(NotFound,),
    tool=Tool(
        "Read recent messages",
        "reads",
        "Read the last few messages of a conversation, oldest first: what you need to answer its next turn. "
        "Older ones are in its summary (memory_get_summary).",
    ),
)
def handler(params: GetContext, caller: Caller) -> Context:
    """Get the last messages of a conversation, oldest first."""
    keep_recent = config().keep_recent_messages
    history = History(conversations(caller), params.conversation_id)
    return Context(history.recent(min(params.max_messages or keep_recent, keep_recent)))
