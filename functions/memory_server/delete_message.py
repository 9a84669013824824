"""memory-server/memory/delete_message: delete one message permanently."""

from api.deployment import lambda_function, table
from api.handler import method
from memory_server import ConversationParams
from memory_server.stores import conversations
from shared.memory.message_deletion import delete_message
from shared.memory.models import MessageDeletion, MessageId
from shared.rpc.caller import Caller
from shared.rpc.errors import NotFound


class DeleteMessage(ConversationParams):
    """The conversation, and the message's id, which `list_messages` gives."""

    message_id: MessageId


@lambda_function(table("Memory", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"))
@method(
    "memory-server/memory/delete_message",
    role="writer",
    errors=(NotFound,),
    example={"conversation_id": "chat_private", "message_id": "msg_00000000000000000000000000000000_1"},
)
def handler(params: DeleteMessage, caller: Caller) -> MessageDeletion:
    """Delete a message and the summary that covers it. Keep who deleted it, and when."""
    delete_message(conversations(caller), params.conversation_id, params.message_id, caller.sub)
    return MessageDeletion("deleted", params.conversation_id, params.message_id)
