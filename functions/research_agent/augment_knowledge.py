"""research-agent/augment_knowledge: add a text, such as research from elsewhere, to a collection."""

import hashlib
from typing import Annotated

from pydantic import Field

from api.deployment import EMBEDDING_INDEX, SPLITTING, lambda_function, table
from api.handler import method
from research_agent.index import documents
from research_agent.jobs import jobs
from research_agent.stores import collections
from shared.knowledge.errors import document_too_large, unreadable
from shared.knowledge.ingestion import DocumentIngestion, is_long
from shared.knowledge.models import MAX_TEXT_BYTES, Name, NewKnowledgeDocument, Path
from shared.knowledge.recorded_space import recorded_space
from shared.knowledge.rendering import render_ingestion_result
from shared.knowledge.responses import IngestionResult, ingestion_result, job_accepted, require_ingested
from shared.rpc.caller import Caller
from shared.rpc.errors import Conflict, InvalidRequest, NotFound, TooLarge, Unavailable
from shared.rpc.mcp_catalog import McpTool
from shared.rpc.method import Params
from shared.rpc.whitespace import NOT_BLANK, is_blank


class AugmentKnowledge(Params):
    """A text in Markdown, its source, and the target collection."""

    content: Annotated[str, Field(json_schema_extra=NOT_BLANK | {"maxLength": MAX_TEXT_BYTES})]
    source: Annotated[Path, Field(description="An identifier or URL; the same source replaces what was there.")]
    collection: Name
    title: Annotated[str, Field(max_length=500)] = ""


@lambda_function(
    table("Knowledge", "BatchGetItem", "BatchWriteItem", "GetItem", "PutItem", "Query", "UpdateItem"),
    EMBEDDING_INDEX,
    SPLITTING,
)
@method(
    "research-agent/augment_knowledge",
    role="writer",
    errors=(NotFound, InvalidRequest, Conflict, TooLarge, Unavailable),
    example={"content": "Roses are cut in March.", "source": "roses.md", "collection": "garden"},
    tool=McpTool(
        "Augment knowledge",
        "sets",
        "Add external research to a collection: its content in Markdown, and the source it comes from.",
        text=render_ingestion_result,
    ),
)
def handler(params: AugmentKnowledge, caller: Caller) -> IngestionResult:
    """Store the text under its source."""
    collection = collections(caller).require(params.collection, recorded_space())
    if is_blank(params.content):
        raise unreadable(params.source, "holds no text")
    content = params.content.encode("utf-8")
    if len(content) > MAX_TEXT_BYTES:
        raise document_too_large(params.source, MAX_TEXT_BYTES)
    digest = hashlib.sha256(content).hexdigest()
    new = NewKnowledgeDocument(params.source, params.content, hash=digest, title=params.title, origin="text")
    stored = documents(caller, collection)
    if is_long(stored, [new]):
        return job_accepted(jobs(caller).start(collection, [new], []), collection)
    ingestion = DocumentIngestion(stored)
    ingestion.add_all([new])
    require_ingested(ingestion.tally, params.source)
    collections(caller).require_unchanged(collection)
    return ingestion_result(ingestion.tally, collection)
