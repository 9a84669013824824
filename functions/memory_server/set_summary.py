"""memory-server/memory/set_summary: replace the summary of a conversation."""

from __future__ import annotations

from doors.direct import Caller, method
from memory_server import InConversation, conversations
from memory_server.results import Done
from shared.memory.histories import History
from shared.memory.models import SummaryText
from shared.rpc.errors import NotFound
from shared.rpc.offers import Tool


class SetSummary(InConversation):
    """The summary of everything said so far; `compress` is accepted and ignored."""

    summary: SummaryText
    compress: bool | None = None


@method(
    "memory-server/memory/set_summary",
    role="writer",
    errors=(NotFound,),
    tool=Tool(
        "Store a summary",
        "replaces",
        "Store the summary of everything said so far in a conversation, in place of the one before. The "
        "messages themselves stay.",
    ),
)
def handler(params: SetSummary, caller: Caller) -> Done:
    """Store the summary; the full history is kept."""
    history = History(conversations(caller), params.conversation_id)
    history.set_summary(params.summary, covers=history.last_number)
    return Done("success", params.conversation_id)
