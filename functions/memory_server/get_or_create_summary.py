"""memory-server/memory/get_or_create_summary: the summary of a conversation, or "" if it has none yet."""

from typing import Annotated

from pydantic import FailFast, Field

from api.deployment import LANGUAGE_MODEL, lambda_function, table, variables
from api.handler import method
from memory_server import ConversationParams
from memory_server.stores import conversations
from shared.memory.message_history import MessageHistory
from shared.memory.models import Content, Language, Role, SummaryResult
from shared.platform.config import config
from shared.rpc.caller import Caller
from shared.rpc.errors import NotFound
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
    table("Memory", "ConditionCheckItem", "GetItem", "PutItem", "Query"),
    LANGUAGE_MODEL,
    variables("AUTO_SUMMARY", "KEEP_RECENT_MESSAGES", "SUMMARIZE_THRESHOLD"),
)
@method(
    "memory-server/memory/get_or_create_summary",
    role="writer",
    errors=(NotFound,),
    example={"conversation_id": "chat_garden", "language": "vi"},
    tool=McpTool(
        "Get or make a summary",
        "sets",
        "Get the stored summary of a conversation, or generate one if the server has a model for it. If the "
        "summary is empty, write one yourself and store it with memory_set_summary.",
    ),
)
def handler(params: GetOrCreateSummary, caller: Caller) -> SummaryResult:
    """Get the stored summary. If AUTO_SUMMARY is on, let it cover the messages that have become old."""
    settings = config()
    history = MessageHistory(conversations(caller), params.conversation_id)
    stored = history.summary()
    kept = settings.keep_recent_messages
    waiting = history.header.last_number - (stored.covers + kept if stored and stored.text else 0)
    if not settings.auto_summary or waiting < settings.summarize_threshold:
        return SummaryResult(stored.text if stored else "")
    from shared.language_model import language_model
    from shared.memory.summarization import summarize

    model = language_model()
    assert model is not None, "the settings refuse AUTO_SUMMARY without a model"
    return SummaryResult(summarize(history, model, params.language, kept))
