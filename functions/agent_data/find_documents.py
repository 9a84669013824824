"""agent-data/find_documents: find documents of the whole tree by words of their titles and ids."""

from typing import Annotated

from pydantic import AfterValidator, Field

from agent_data.stores import document_queries
from api.deployment import lambda_function, table
from api.handler import method
from shared.documents.metadata_filter import MetadataFilter
from shared.documents.models import FoundDocuments
from shared.rpc.caller import Caller
from shared.rpc.cursor import PageParams
from shared.rpc.mcp_catalog import McpTool
from shared.rpc.whitespace import NOT_BLANK, not_blank


class FindDocuments(PageParams):
    """The words, and values that the metadata must have."""

    query: Annotated[
        str,
        Field(min_length=1, max_length=256, description="words, or beginnings of words", json_schema_extra=NOT_BLANK),
        AfterValidator(not_blank),
    ]
    metadata: Annotated[MetadataFilter, Field(default_factory=dict)]


@lambda_function(table("Documents", "BatchGetItem", "Query"))
@method(
    "agent-data/find_documents",
    role="reader",
    example={"query": "gui", "limit": 10},
    tool=McpTool(
        "Find documents",
        "reads",
        "Find documents of the whole tree by beginnings of words of their titles and ids. If 'next_cursor' is "
        "returned, call again with it.",
    ),
)
def handler(params: FindDocuments, caller: Caller) -> FoundDocuments:
    """List the documents that have all words, without their texts."""
    return document_queries(caller).find(params.query, params.metadata, params.limit, params.cursor)
