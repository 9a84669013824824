"""memory-server/memory/get_all_messages: every message of a conversation, for display."""

from __future__ import annotations

from doors.direct import Caller, method
from memory_server import conversations
from memory_server.paging import Paged
from shared.memory.histories import History
from shared.memory.models import MessagePage
from shared.rpc.errors import NotFound


@method("memory-server/memory/get_all_messages", role="reader", errors=(NotFound,))
def handler(params: Paged, caller: Caller) -> MessagePage:
    """Get all messages, oldest first; `next_cursor` where more follow."""
    return History(conversations(caller), params.conversation_id).page(params.limit, params.cursor)
