"""memory-server/memory/get_or_create: get an existing conversation or create a new one."""

from dataclasses import dataclass

from api.deployment import MESSAGE_INDEX, lambda_function, table
from api.handler import method
from memory_server.stores import conversations
from shared.memory.models import ConversationId, Subject
from shared.rpc.caller import Caller
from shared.rpc.errors import Conflict
from shared.rpc.mcp_catalog import McpTool
from shared.rpc.method import Params


class GetOrCreate(Params):
    """The conversation. Without an id, a new one."""

    conversation_id: ConversationId | None = None
    subject: Subject | None = None


@dataclass(frozen=True, slots=True)
class ConversationResponse:
    """The id of an existing conversation."""

    conversation_id: str


@lambda_function(table("Memory", "ConditionCheckItem", "GetItem", "PutItem", "UpdateItem"), MESSAGE_INDEX)
@method(
    "memory-server/memory/get_or_create",
    role="writer",
    errors=(Conflict,),
    example={"conversation_id": "chat_garden"},
    tool=McpTool(
        "Start or find a conversation",
        "adds",
        "Get the conversation with this id, creating it if it does not exist; without an id, start a new one. "
        "Returns the conversation_id that the other memory tools take.",
    ),
)
def handler(params: GetOrCreate, caller: Caller) -> ConversationResponse:
    """Get an existing conversation or create a new one."""
    return ConversationResponse(conversations(caller).get_or_create(params.conversation_id, params.subject))
