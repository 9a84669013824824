"""memory-server/memory/get_or_create_summary: the summary of a conversation, or "" if one needs to be made."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from api.handler import Caller, Params, method
from memory_server import ConversationParams, conversations
from shared.config import config
from shared.language_model import language_model
from shared.memory.message_history import MessageHistory
from shared.memory.models import Content, Language, Role
from shared.memory.responses import SummaryResult
from shared.memory.summarization import summarize
from shared.rpc.errors import NotFound, Unavailable
from shared.rpc.mcp_catalog import McpTool


class OldMessage(Params):
    """One of the messages that the caller holds for old."""

    role: Role
    content: Content


class GetOrCreateSummary(ConversationParams):
    """The language to make a summary in; `old_messages` are accepted, and the stored ones are what is summarized."""

    old_messages: Annotated[list[OldMessage], Field(default_factory=list, max_length=100_000)]
    language: Language = "vi"


@method(
    "memory-server/memory/get_or_create_summary",
    role="writer",
    errors=(NotFound, Unavailable),
    tool=McpTool(
        "Get or make a summary",
        "sets",
        "Get the stored summary of a conversation, or have one made where the server has a model for it. An "
        "empty summary means: write one yourself and store it with memory_set_summary.",
    ),
)
def handler(params: GetOrCreateSummary, caller: Caller) -> SummaryResult:
    """Get the stored summary; with AUTO_SUMMARY on, make one where there is none."""
    settings = config()
    history = MessageHistory(conversations(caller), params.conversation_id)
    stored = history.summary()
    if stored and stored.text:
        return SummaryResult(stored.text)
    model = language_model() if settings.auto_summary else None
    if model is None or history.last_number < settings.summarize_threshold:
        return SummaryResult("")
    return SummaryResult(summarize(history, model, params.language, settings.keep_recent_messages))
