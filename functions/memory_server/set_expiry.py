"""memory-server/memory/set_expiry: hide a conversation from a given time on, and delete it a week later."""

from typing import Annotated

from pydantic import Field

from api.deployment import MESSAGE_INDEX, lambda_function, table
from api.handler import method
from memory_server import ConversationParams
from memory_server.stores import conversations
from shared.memory.models import ConversationExpiry
from shared.rpc import timestamps
from shared.rpc.caller import Caller
from shared.rpc.errors import NotFound


class SetExpiry(ConversationParams):
    """The conversation and the time. Until then, another call changes it."""

    expires_at: Annotated[
        timestamps.Timestamp,
        Field(description="the time from which the conversation is not found; a time that is past hides it at once"),
    ]


@lambda_function(table("Memory", "GetItem", "PutItem", "UpdateItem"), MESSAGE_INDEX)
@method(
    "memory-server/memory/set_expiry",
    role="writer",
    errors=(NotFound,),
    example={"conversation_id": "chat_garden", "expires_at": "2099-01-01T00:00:00Z"},
)
def handler(params: SetExpiry, caller: Caller) -> ConversationExpiry:
    """Set the time from which the conversation is not found."""
    conversations(caller).set_expiry(params.conversation_id, params.expires_at)
    return ConversationExpiry("success", params.conversation_id, timestamps.to_iso(params.expires_at))
