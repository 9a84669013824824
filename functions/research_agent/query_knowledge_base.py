"""research-agent/query_knowledge_base: search the knowledge base by meaning and by words, re-ranked."""

from typing import Annotated

from pydantic import Field

from api.deployment import EMBEDDING_INDEX, RERANKING_MODEL, lambda_function, table
from api.handler import method
from research_agent.stores import collections, knowledge_table, projects
from shared.knowledge.errors import nothing_linked
from shared.knowledge.models import Name, Names, parse_names
from shared.knowledge.query_history import QueryHistory
from shared.knowledge.query_responses import QueryResults
from shared.knowledge.rendering import render_query_results
from shared.knowledge.search_service import MAX_QUERY, search
from shared.rpc.caller import Caller
from shared.rpc.errors import Conflict, InvalidRequest, NotFound, Unavailable
from shared.rpc.mcp_catalog import McpTool
from shared.rpc.method import WHOLE, Params
from shared.rpc.optional_write import lost_if_disk_full
from shared.rpc.whitespace import NOT_BLANK


class QueryKnowledgeBase(Params):
    """A query and the collections to search: the named ones, the project's, or all."""

    query: Annotated[
        str,
        Field(
            description="The question or the words to search for, in any language.",
            examples=["watering plants"],
            json_schema_extra=NOT_BLANK | {"maxLength": MAX_QUERY},
        ),
    ]
    collections: Annotated[
        Names | None, Field(description="Names, separated by commas; default: the project's, or all.")
    ] = None
    top_k: Annotated[int, Field(ge=1, le=50), WHOLE] = 10
    document_context: Annotated[
        str | None, Field(max_length=100_000, description="The text you are working on; it influences the ranking.")
    ] = None
    project_name: Annotated[Name | None, Field(description="Search this project's default collections.")] = None
    explain: Annotated[bool, Field(description="Also return each passage's collection and the parts of its score.")] = (
        False
    )


@lambda_function(
    table("Knowledge", "BatchGetItem", "GetItem", "PutItem", "Query"),
    EMBEDDING_INDEX,
    RERANKING_MODEL,
)
@method(
    "research-agent/query_knowledge_base",
    role="reader",
    errors=(NotFound, InvalidRequest, Conflict, Unavailable),
    example={"query": "How are ferns watered?", "collections": "garden", "top_k": 3},
    tool=McpTool(
        "Query the knowledge base",
        "reads",
        "Search the knowledge base by meaning and by words, in any language. Returns passages with their source, "
        "heading path and relevance, and suggests how to improve the query.",
        text=render_query_results,
    ),
)
def handler(params: QueryKnowledgeBase, caller: Caller) -> QueryResults:
    """Search current documents, and store the query in the history."""
    names = parse_names(params.collections)
    if not names and params.project_name:
        names = projects(caller).require(params.project_name).searched
        if not names:
            raise nothing_linked(params.project_name)
    context = params.document_context or ""
    results, searched = search(
        params.query, collections(caller), names, top_k=params.top_k, context=context, explain=params.explain
    )
    history = QueryHistory(knowledge_table(), caller.tenant_id)
    with lost_if_disk_full("query history"):
        history.add(params.query, searched, len(results.results), results.query_refinement.status)
    return results
