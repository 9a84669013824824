"""research-agent/query_knowledge_base: search the knowledge base by meaning and by words, re-ranked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from doors.direct import Caller, Params, method
from research_agent import collections, documents, projects, table
from research_agent.markdown import query_results
from research_agent.naming import NOT_BLANK, Names, named
from shared.knowledge.history import QueryHistory
from shared.knowledge.models import Name
from shared.knowledge.refinement import QueryRefinement, RelevanceLabel
from shared.knowledge.refusals import nothing_linked
from shared.knowledge.searching import MAX_QUERY, Search
from shared.rpc.errors import Conflict, InvalidRequest, NotFound, Unavailable
from shared.rpc.method import WHOLE
from shared.rpc.offers import Tool


class Query(Params):
    """What is looked for, and where; without collections, in the project's, or in all."""

    query: Annotated[
        str,
        Field(
            description="What you look for, in any language.",
            examples=["watering plants"],
            json_schema_extra=NOT_BLANK | {"maxLength": MAX_QUERY},
        ),
    ]
    collections: Annotated[Names | None, Field(description="Names of collections, parted by commas.")] = None
    top_k: Annotated[int, Field(ge=1, le=50), WHOLE] = 10
    document_context: Annotated[
        str | None, Field(max_length=100_000, description="What you are working on; it changes the ranking.")
    ] = None
    project_name: Annotated[Name | None, Field(description="Search this project's default collections.")] = None


@dataclass(frozen=True, slots=True)
class ResultMetadata:
    """Where in its document a passage stands, and what it is."""

    document_title: str
    content_type: Literal["prose", "code_block", "table"]
    chunk_sequence_id: int


@dataclass(frozen=True, slots=True)
class Result:
    """One passage."""

    content: str
    relevance_score: float
    relevance_label: RelevanceLabel
    source_document: str
    header_path: str
    metadata: ResultMetadata


@dataclass(frozen=True, slots=True)
class QueryResults:
    """Passages, best first, and how the query could be better."""

    status: Literal["success"]
    results: list[Result]
    query_refinement: QueryRefinement


@method(
    "research-agent/query_knowledge_base",
    role="reader",
    errors=(NotFound, InvalidRequest, Conflict, Unavailable),
    tool=Tool(
        "Query the knowledge base",
        "reads",
        "Search the knowledge base by meaning and by words, in any language. Answers passages with their source, "
        "heading path and relevance, and says how the query could be better.",
        text=query_results,
    ),
)
def handler(params: Query, caller: Caller) -> QueryResults:
    """Search, check each passage against the documents as they are now, and remember the query."""
    names = named(params.collections)
    if not names and params.project_name:
        names = projects(caller).require(params.project_name).searched
        if not names:
            raise nothing_linked(params.project_name)
    search = Search(caller.tenant_id, collections(caller), lambda each: documents(caller, each))
    found = search.run(params.query, names, params.top_k, params.document_context or "")
    history = QueryHistory(table(), caller.tenant_id)
    history.note(params.query, found.collections, len(found.hits), found.refinement.status)
    results = [
        Result(
            hit.passage.text,
            found.score(hit),
            found.label(hit),
            hit.passage.source,
            " > ".join(hit.passage.heading_path),
            ResultMetadata(hit.passage.title, hit.passage.content_type, hit.passage.ordinal + 1),
        )
        for hit in found.hits
    ]
    return QueryResults("success", results, found.refinement)
