"""memory-server/memory/get_or_create_summary: the summary of a conversation, or "" if it has none yet."""

from typing import Annotated

from pydantic import FailFast, Field

from api.deployment import LANGUAGE_MODEL, lambda_function, table, variables
from api.handler import method
from memory_server import ConversationParams
from memory_server.stores import conversations
from shared.language_model import language_model
from shared.memory.message_history import MessageHistory
from shared.memory.models import Content, Language, Role, SummaryResult
from shared.memory.summarization import summarize
from shared.platform.config import config
from shared.rpc.caller import Caller
from shared.rpc.errors import NotFound, Unavailable
from shared.rpc.mcp_catalog import McpTool
from shared.rpc.method import Params


class OldMessage(Params):
    """One of the old messages, as the caller sends it."""

    role: Role
    content: Content


class GetOrCreateSummary(ConversationParams):
    """The conversation and the language of a new summary. `old_messages` is ignored: stored messages are summarized."""

    # Of many wrong messages, only the first is reported.
    old_messages: Annotated[list[OldMessage], Field(default_factory=list, max_length=20_000), FailFast()]
    language: Language = "vi"


@lambda_function(
    table("Memory", "GetItem", "PutItem", "Query"),
    LANGUAGE_MODEL,
    variables("AUTO_SUMMARY", "KEEP_RECENT_MESSAGES", "SUMMARIZE_THRESHOLD"),
)
@method(
    "memory-server/memory/get_or_create_summary",
    role="writer",
    errors=(NotFound, Unavailable),
    example={"conversation_id": "chat_garden", "language": "vi"},
    tool=McpTool(
        "Get or make a summary",
        "sets",
        "Get the stored summary of a conversation, or generate one if the server has a model for it. If the "
        "summary is empty, write one yourself and store it with memory_set_summary.",
    ),
)
def handler(params: GetOrCreateSummary, caller: Caller) -> SummaryResult:
    """Get the stored summary. Generate one if there is none and AUTO_SUMMARY is on."""
    settings = config()
    history = MessageHistory(conversations(caller), params.conversation_id)
    stored = history.summary()
    if stored and stored.text:
        return SummaryResult(stored.text)
    model = language_model() if settings.auto_summary else None
    if model is None or history.header.last_number < settings.summarize_threshold:
        return SummaryResult("")
    return SummaryResult(summarize(history, model, params.language, settings.keep_recent_messages))
