"""memory-server/resources/read: one conversation as an MCP resource."""

import json
from dataclasses import asdict
from typing import Annotated, Any
from urllib.parse import unquote

from pydantic import Field, TypeAdapter, ValidationError

from api.deployment import lambda_function, table
from api.handler import method
from memory_server import URI
from memory_server.stores import conversations
from shared.memory.message_history import MessageHistory
from shared.memory.models import ConversationId
from shared.rpc.caller import Caller
from shared.rpc.cursor import Cursor, Limit
from shared.rpc.errors import NotFound
from shared.rpc.mcp_resource import ResourceContents, Uri
from shared.rpc.method import Params
from shared.rpc.response_size import SizeBudget

_CONVERSATION_ID: TypeAdapter[str] = TypeAdapter(ConversationId)


class ReadConversationResource(Params):
    """The URI of a conversation, and a page of its messages."""

    uri: Annotated[Uri, Field(examples=["memory://conversation/chat_xxx"])]
    limit: Limit | None = None
    cursor: Cursor | None = None

    def listing(self, _method: str) -> tuple[str, dict[str, Any]]:
        """Return the list of the conversation's messages, which `get_all_messages` continues."""
        return "memory-server/memory/get_all_messages", {"conversation_id": _conversation_id(self.uri)}


@lambda_function(table("Memory", "GetItem", "Query"))
@method(
    "memory-server/resources/read",
    role="reader",
    errors=(NotFound,),
    example={"uri": "memory://conversation/chat_garden"},
)
def handler(params: ReadConversationResource, caller: Caller) -> ResourceContents:
    """Read a conversation by its URI."""
    history = MessageHistory(conversations(caller), _conversation_id(params.uri))
    stored = history.summary()
    summary = stored.as_object() if stored else {}
    page = history.page(params.limit, params.cursor, SizeBudget(summary, nested=1))
    messages = [asdict(message) for message in page.messages]
    text = json.dumps({"messages": messages, "summary": summary}, ensure_ascii=False)
    return ResourceContents.json(params.uri, text, page.next_cursor)


def _conversation_id(uri: str) -> str:
    prefix, _, quoted = uri.partition(URI)
    try:
        if prefix:
            raise ValueError("not a conversation URI")
        return _CONVERSATION_ID.validate_python(unquote(quoted, errors="strict"))
    except (ValidationError, ValueError):
        raise NotFound(
            "No resource has this URI.",
            details={"uri": uri},
            guidance=f"URIs are {URI}{{conversation_id}}; resources/list lists them.",
        ) from None
