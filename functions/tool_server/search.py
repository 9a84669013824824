"""tool-server/search: search the documents and the knowledge base together, in the form that ChatGPT expects."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field

from api.deployment import EMBEDDING_INDEX, MESSAGE_INDEX, PUBLIC_URL, RERANKING_MODEL, lambda_function, table
from api.handler import method
from shared.rpc.caller import Caller
from shared.rpc.errors import Unavailable
from shared.rpc.mcp_catalog import McpTool
from shared.rpc.method import Params
from shared.rpc.whitespace import NOT_BLANK, not_blank
from shared.services.text_search import FoundText, search_texts


class SearchTexts(Params):
    """The words or the question to search for."""

    query: Annotated[
        str,
        Field(
            min_length=1,
            max_length=2048,
            description="Words or a question, in any language.",
            examples=["How are ferns watered?"],
            json_schema_extra=NOT_BLANK,
        ),
        AfterValidator(not_blank),
    ]

    include_messages: Annotated[bool, Field(description="search the messages of conversations, too")] = False


@dataclass(frozen=True, slots=True)
class FoundTexts:
    """The relevant documents, best first."""

    results: list[FoundText]


@lambda_function(
    table("Documents", "BatchGetItem"),
    table("Knowledge", "BatchGetItem", "Query"),
    table("Memory", "BatchGetItem", "Query"),
    MESSAGE_INDEX,
    EMBEDDING_INDEX,
    RERANKING_MODEL,
    PUBLIC_URL,
)
@method(
    "tool-server/search",
    role="reader",
    errors=(Unavailable,),
    example={"query": "How are ferns watered?"},
    tool=McpTool(
        "Search all documents",
        "reads",
        "Search the shared documents and the knowledge base together, in any language. Returns id, title and url of "
        "up to 10 documents, the most relevant first, or none. fetch reads one by its id.",
        hidden=("include_messages",),
    ),
)
def handler(params: SearchTexts, caller: Caller) -> FoundTexts:
    """Search current documents of both kinds."""
    return FoundTexts(search_texts(caller.tenant_id, params.query, include_messages=params.include_messages))
