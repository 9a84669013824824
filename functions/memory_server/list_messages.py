"""memory-server/memory/list_messages: the messages of a conversation with their numbers and times, newest first."""

from api.deployment import lambda_function, table
from api.handler import method
from memory_server import ConversationParams
from memory_server.stores import conversations
from shared.memory.message_history import MessageHistory
from shared.memory.models import NumberedMessagePage
from shared.rpc.caller import Caller
from shared.rpc.cursor import PageParams
from shared.rpc.errors import NotFound


class ListMessages(ConversationParams, PageParams):
    """The conversation, and a page of its messages."""


@lambda_function(table("Memory", "GetItem", "Query"))
@method(
    "memory-server/memory/list_messages",
    role="reader",
    errors=(NotFound,),
    example={"conversation_id": "chat_garden", "limit": 2},
)
def handler(params: ListMessages, caller: Caller) -> NumberedMessagePage:
    """List the messages, newest first."""
    return MessageHistory(conversations(caller), params.conversation_id).newest(params.limit, params.cursor)
