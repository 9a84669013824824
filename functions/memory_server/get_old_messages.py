"""memory-server/memory/get_old_messages: the messages that should be summarized: all but the recent ones."""

from __future__ import annotations

from doors.direct import Caller, method
from memory_server import conversations
from memory_server.paging import Paged
from shared.config import config
from shared.memory.histories import History
from shared.memory.models import OldMessages
from shared.rpc.errors import NotFound
from shared.rpc.offers import Tool


@method(
    "memory-server/memory/get_old_messages",
    role="reader",
    errors=(NotFound,),
    tool=Tool(
        "Read messages to summarise",
        "reads",
        "Read the messages before the recent ones that no summary covers yet: those to summarise. "
        "'total_count' counts all messages of the conversation.",
    ),
)
def handler(params: Paged, caller: Caller) -> OldMessages:
    """Get the messages before the recent ones, without those that the summary covers."""
    settings = config()
    return History(conversations(caller), params.conversation_id).old(
        settings.keep_recent_messages,
        params.limit,
        params.cursor,
        leave_out_summarized=settings.compress_after_summary,
    )
