"""memory-server/memory/get_summary: the summary of a conversation, if there is one."""

from __future__ import annotations

from doors.direct import Caller, method
from memory_server import InConversation, conversations
from memory_server.results import SummaryOf
from shared.memory.histories import History
from shared.rpc.errors import NotFound
from shared.rpc.offers import Tool


@method(
    "memory-server/memory/get_summary",
    role="reader",
    errors=(NotFound,),
    tool=Tool(
        "Read the summary",
        "reads",
        "Read the stored summary of a conversation; empty where there is none.",
    ),
)
def handler(params: InConversation, caller: Caller) -> SummaryOf:
    """Get the stored summary, else the empty string."""
    stored = History(conversations(caller), params.conversation_id).summary()
    return SummaryOf(stored.text if stored else "")
