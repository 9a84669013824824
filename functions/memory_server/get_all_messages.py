"""memory-server/memory/get_all_messages: every message of a conversation, for display."""

from __future__ import annotations

from doors.direct import Caller, method
from memory_server import conversations
from memory_server.paging import Paged
from shared.memory.histories import History
from shared.memory.models import MessagePage
from shared.rpc.errors import NotFound
from shared.rpc.offers import Tool


@method(
    "memory-server/memory/get_all_messages",
    role="reader",
    errors=(NotFound,),
    tool=Tool(
        "Read a whole conversation",
        "reads",
        "Read every message of a conversation, oldest first. Give 'limit' to page; where 'next_cursor' comes "
        "back, call again with it as 'cursor'.",
    ),
)
def handler(params: Paged, caller: Caller) -> MessagePage:
    """Get all messages, oldest first; `next_cursor` where more follow."""
    return History(conversations(caller), params.conversation_id).page(params.limit, params.cursor)
