"""memory-server/memory/list_conversations: the tenant's conversations with their times."""

from typing import Annotated

from pydantic import Field

from api.deployment import lambda_function, table
from api.handler import method
from memory_server.stores import conversations
from shared.memory.models import ConversationEntryPage, Subject
from shared.rpc.caller import Caller
from shared.rpc.cursor import PageParams


class ListConversations(PageParams):
    """A page of the list, optionally restricted to ids with a prefix, or to a subject."""

    prefix: Annotated[str, Field(max_length=200)] = ""
    subject: Annotated[Subject, Field(description="only the conversations of this subject")] | None = None


@lambda_function(table("Memory", "BatchGetItem", "GetItem", "Query"))
@method("memory-server/memory/list_conversations", role="reader", example={"limit": 10})
def handler(params: ListConversations, caller: Caller) -> ConversationEntryPage:
    """List conversations in order of their ids, with the beginning of their newest messages."""
    return conversations(caller).list_entries(params.limit, params.cursor, params.prefix, params.subject)
