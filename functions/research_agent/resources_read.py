"""research-agent/resources/read: read collections, their documents and the query history as MCP resources."""

from dataclasses import asdict
from typing import Annotated
from urllib.parse import unquote

from pydantic import Field, TypeAdapter, ValidationError

from api.deployment import SEARCH_INDEX, lambda_function, table
from api.handler import method
from research_agent import COLLECTIONS_URI, QUERIES_URI, manage_collections
from research_agent.manage_collections import ManageCollections
from research_agent.stores import knowledge_table
from shared.knowledge.models import Name
from shared.knowledge.query_history import QueryHistory
from shared.rpc.caller import Caller
from shared.rpc.cursor import Cursor, Limit
from shared.rpc.errors import NotFound
from shared.rpc.mcp_resource import ResourceContents, Uri
from shared.rpc.method import Params
from shared.rpc.strict_json import compact

_NAME: TypeAdapter[str] = TypeAdapter(Name)


class ReadKnowledgeResource(Params):
    """The URI of a resource, and the page to read."""

    uri: Annotated[Uri, Field(examples=["knowledge://collections"])]
    limit: Limit = 100
    cursor: Cursor | None = None


@lambda_function(table("Knowledge", "GetItem", "Query"), SEARCH_INDEX)
@method(
    "research-agent/resources/read",
    role="reader",
    errors=(NotFound,),
    example={"uri": "knowledge://collections/garden"},
)
def handler(params: ReadKnowledgeResource, caller: Caller) -> ResourceContents:
    """Read a resource by its URI."""
    if params.uri == QUERIES_URI:
        queries, next_cursor = QueryHistory(knowledge_table(), caller.tenant_id).page(params.limit, params.cursor)
        text = compact({"queries": [asdict(each) for each in queries]})
    else:
        manage = manage_collections.handler.method
        result = manage.run(_collection_params(params), caller)
        text, next_cursor = manage.as_json(result), result.next_cursor
    return ResourceContents.json(params.uri, text, next_cursor)


def _collection_params(params: ReadKnowledgeResource) -> ManageCollections:
    if params.uri == COLLECTIONS_URI:
        return ManageCollections(action="list", limit=params.limit, cursor=params.cursor)
    outside, _, quoted = params.uri.partition(f"{COLLECTIONS_URI}/")
    try:
        name = _NAME.validate_python(unquote(quoted, errors="strict"))
        if outside:
            raise ValueError("another scheme")
    except (ValidationError, ValueError):
        raise NotFound(
            "No resource has this URI.",
            code="COLLECTION_NOT_FOUND",
            details={"uri": params.uri},
            guidance=f"URIs are {COLLECTIONS_URI}, {COLLECTIONS_URI}/{{collection_name}} and {QUERIES_URI}.",
        ) from None
    return ManageCollections(action="info", collection_name=name, limit=params.limit, cursor=params.cursor)
