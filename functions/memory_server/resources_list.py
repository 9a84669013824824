"""memory-server/resources/list: the tenant's conversations as MCP resources."""

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote

from pydantic import Field

from api.deployment import lambda_function, table
from api.handler import method
from memory_server import URI
from memory_server.stores import conversations
from shared.rpc.caller import Caller
from shared.rpc.cursor import PageParams


class ListResources(PageParams):
    """A page of the list, optionally restricted to ids with a prefix."""

    prefix: Annotated[str, Field(max_length=200)] = ""


@dataclass(frozen=True, slots=True)
class ConversationResource:
    """One conversation."""

    uri: str
    name: str
    description: str
    mimeType: str = "application/json"  # noqa: N815 - MCP's own name


@dataclass(frozen=True, slots=True)
class ConversationResourcePage:
    """A page of conversations in order of their ids, with `nextCursor` if more follow."""

    resources: list[ConversationResource]
    nextCursor: str | None = None  # noqa: N815 - MCP's own name


@lambda_function(table("Memory", "BatchGetItem", "Query"))
@method("memory-server/resources/list", role="reader", example={"limit": 10})
def handler(params: ListResources, caller: Caller) -> ConversationResourcePage:
    """List conversations as resources."""
    ids, next_cursor = conversations(caller).list_ids(params.limit, params.cursor, params.prefix)
    resources = [
        ConversationResource(URI + quote(id_, safe=":@"), f"Conversation {id_}", f"Conversation history for {id_}")
        for id_ in ids
    ]
    return ConversationResourcePage(resources, next_cursor)
