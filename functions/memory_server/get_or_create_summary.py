"""memory-server/memory/get_or_create_summary: the summary of a conversation, or "" if one needs to be made."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from doors.direct import Caller, Params, method
from memory_server import InConversation, conversations
from memory_server.results import SummaryOf
from shared.config import config
from shared.language_model import language_model
from shared.memory.histories import History
from shared.memory.models import Content, Language, Message, Role
from shared.memory.summarizing import summarize
from shared.rpc.errors import NotFound, Unavailable
from shared.rpc.offers import Tool


class OldMessage(Params):
    """One of the messages to summarize."""

    role: Role
    content: Content


class GetOrCreateSummary(InConversation):
    """The messages to summarize where no summary is stored, and the language to do it in."""

    old_messages: Annotated[list[OldMessage], Field(default_factory=list, max_length=100_000)]
    language: Language = "vi"


@method(
    "memory-server/memory/get_or_create_summary",
    role="writer",
    errors=(NotFound, Unavailable),
    tool=Tool(
        "Get or make a summary",
        "sets",
        "Get the stored summary of a conversation, or have one made where the server has a model for it. An "
        "empty summary means: write one yourself and store it with memory_set_summary.",
    ),
)
def handler(params: GetOrCreateSummary, caller: Caller) -> SummaryOf:
    """Get the stored summary; with AUTO_SUMMARY on, make one where there is none."""
    settings = config()
    history = History(conversations(caller), params.conversation_id)
    stored = history.summary()
    if stored:
        return SummaryOf(stored.text)
    model = language_model() if settings.auto_summary else None
    if model is None or history.last_number < settings.summarize_threshold:
        return SummaryOf("")
    given = [Message(old.role, old.content) for old in params.old_messages]
    return SummaryOf(summarize(history, model, given, params.language, settings.keep_recent_messages))
