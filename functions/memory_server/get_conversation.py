"""memory-server/memory/get_conversation: a conversation's times, number of messages, and summary."""

from api.deployment import lambda_function, table, variables
from api.handler import method
from memory_server import ConversationParams
from memory_server.stores import conversations
from shared.memory.message_history import MessageHistory
from shared.memory.models import ConversationDetails
from shared.platform.config import config
from shared.rpc.caller import Caller
from shared.rpc.errors import NotFound


@lambda_function(table("Memory", "GetItem", "Query"), variables("KEEP_RECENT_MESSAGES"))
@method(
    "memory-server/memory/get_conversation",
    role="reader",
    errors=(NotFound,),
    example={"conversation_id": "chat_garden"},
)
def handler(params: ConversationParams, caller: Caller) -> ConversationDetails:
    """Get a conversation without its messages, and the number of the last message that its summary covers."""
    history = MessageHistory(conversations(caller), params.conversation_id)
    return history.details(config().keep_recent_messages)
