"""research-agent/list_documents: the documents of a collection, by path."""

from typing import Annotated

from pydantic import Field

from api.deployment import SEARCH_INDEX, lambda_function, table
from api.handler import method
from research_agent.index import documents
from research_agent.stores import collections
from shared.knowledge.models import MAX_PATH_BYTES, Name
from shared.knowledge.rendering import render_documents
from shared.knowledge.responses import DocumentPage
from shared.rpc.caller import Caller
from shared.rpc.cursor import PageParams
from shared.rpc.errors import NotFound
from shared.rpc.mcp_catalog import McpTool


class ListDocuments(PageParams):
    """A collection, and a page of its documents."""

    collection_name: Name
    prefix: Annotated[
        str, Field(max_length=MAX_PATH_BYTES, description="Only documents whose paths begin with this.")
    ] = ""


@lambda_function(table("Knowledge", "GetItem", "Query"), SEARCH_INDEX)
@method(
    "research-agent/list_documents",
    role="reader",
    errors=(NotFound,),
    example={"collection_name": "garden"},
    tool=McpTool("List documents", "reads", "List a collection's documents by path.", text=render_documents),
)
def handler(params: ListDocuments, caller: Caller) -> DocumentPage:
    """List the documents whose paths begin with the prefix, in the order of their paths."""
    collection = collections(caller).require(params.collection_name)
    return DocumentPage(*documents(caller, collection).page(params.limit, params.cursor, params.prefix))
