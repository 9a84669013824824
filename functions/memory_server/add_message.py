"""memory-server/memory/add_message: append one message to a conversation."""

from api.deployment import MESSAGE_INDEX, lambda_function, table
from api.handler import method
from memory_server import ConversationParams
from memory_server.stores import conversations
from shared.memory.models import Content, ConversationResult, Role, Speaker, Subject
from shared.rpc.caller import Caller
from shared.rpc.errors import Conflict
from shared.rpc.mcp_catalog import McpTool


class AddMessageParams(ConversationParams):
    """The message and its conversation."""

    role: Role
    content: Content
    name: Speaker | None = None
    subject: Subject | None = None


@lambda_function(
    table("Memory", "BatchWriteItem", "ConditionCheckItem", "GetItem", "PutItem", "Query", "UpdateItem"), MESSAGE_INDEX
)
@method(
    "memory-server/memory/add_message",
    role="writer",
    errors=(Conflict,),
    example={"conversation_id": "chat_garden", "role": "user", "content": "Cây dương xỉ cần bao nhiêu nước?"},
    tool=McpTool(
        "Add a message",
        "adds",
        "Append one message to a conversation, which is created if it does not exist. Calling twice adds the "
        "message twice.",
    ),
)
def handler(params: AddMessageParams, caller: Caller) -> ConversationResult:
    """Append one message. Create the conversation if it does not exist."""
    conversations(caller).append(
        params.conversation_id, params.role, params.content, name=params.name, subject=params.subject
    )
    return ConversationResult("success", params.conversation_id)
