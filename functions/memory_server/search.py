"""memory-server/memory/search: find messages by meaning and words, in all conversations or in some."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field, create_model

from api.deployment import EMBEDDING_INDEX, MESSAGE_INDEX, lambda_function, table
from api.handler import method
from memory_server.stores import conversations
from shared.memory.models import ConversationId, FoundMessages, Role, Subject
from shared.platform.config import config
from shared.rpc import timestamps
from shared.rpc.caller import Caller
from shared.rpc.errors import Unavailable
from shared.rpc.mcp_catalog import McpTool
from shared.rpc.method import WHOLE, Params
from shared.rpc.whitespace import NOT_BLANK, not_blank

Query = Annotated[
    str,
    Field(
        min_length=1,
        max_length=2048,
        description="words or a question; without it, the newest messages",
        examples=["When does Lan water the ferns?"],
        json_schema_extra=NOT_BLANK,
    ),
    AfterValidator(not_blank),
]


class SearchScope(Params):
    """The query, and the conversations and messages that it is about."""

    query: Query | None = None
    conversation_id: ConversationId | None = None
    conversation_prefix: Annotated[str, Field(max_length=200)] = ""
    subject: Annotated[Subject, Field(description="only this subject")] | None = None
    roles: Annotated[list[Role], Field(max_length=3)] | None = None
    neighbours: Annotated[int, Field(ge=0, le=5), WHOLE] = 0
    limit: Annotated[int, Field(ge=1, le=50), WHOLE] = 10


_TIMES: dict[str, Any] = {
    "from": (Annotated[timestamps.Timestamp | None, Field(description="from this time on")], None),
    "to": (Annotated[timestamps.Timestamp | None, Field(description="before this time")], None),
}
# A class cannot name a field "from".
SearchMessages: type[SearchScope] = create_model("SearchMessages", __base__=SearchScope, __module__=__name__, **_TIMES)


@lambda_function(table("Memory", "BatchGetItem", "GetItem", "Query"), EMBEDDING_INDEX, MESSAGE_INDEX)
@method(
    "memory-server/memory/search",
    role="reader",
    errors=(Unavailable,),
    example={"query": "Who waters the garden?", "neighbours": 1},
    tool=McpTool(
        "Search messages",
        "reads",
        "Find messages of all conversations by meaning and words, in any language, or the newest ones.",
    ),
)
def handler(params: SearchMessages, caller: Caller) -> FoundMessages:
    """Search the messages of the tenant."""
    if not config().has_message_index:
        raise Unavailable(
            "Messages are not indexed here.",
            guidance="Tell the operator: search needs Qdrant, and KHO_MESSAGE_INDEX must not be false.",
        )
    from shared.memory.search import MessageSearch
    from shared.search.message_index import MessageFilter

    since, until = (getattr(params, name) for name in _TIMES)
    scope = MessageFilter(
        params.conversation_id or "",
        params.conversation_prefix,
        params.subject or "",
        tuple(params.roles or ()),
        timestamps.optional_iso(since) or "",
        timestamps.optional_iso(until) or "",
    )
    search = MessageSearch(conversations(caller), scope, params.limit, params.neighbours)
    return search.answer(params.query) if params.query else search.newest()
