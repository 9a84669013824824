"""research-agent/ingest_documents: add documents or folders to a collection."""

import hashlib
from typing import Annotated, Final

from pydantic import Field

from api.deployment import EMBEDDING_INDEX, SPLITTING, lambda_function, table
from api.handler import method
from research_agent.index import documents
from research_agent.jobs import jobs
from research_agent.stores import collections
from shared.knowledge import folder_sync
from shared.knowledge.errors import document_ambiguous, document_missing, file_reading_disabled
from shared.knowledge.ingestion import DocumentIngestion, is_long
from shared.knowledge.models import MAX_TEXT_BYTES, Name, NewKnowledgeDocument, Path
from shared.knowledge.recorded_space import recorded_space
from shared.knowledge.rendering import render_ingestion_result
from shared.knowledge.responses import IngestionResult, ingestion_result, job_accepted, require_ingested
from shared.platform.runtime import runtime
from shared.rpc.caller import Caller
from shared.rpc.errors import Conflict, InvalidRequest, NotFound, TooLarge, Unavailable
from shared.rpc.mcp_catalog import McpTool
from shared.rpc.method import Params

_MAX_IMMEDIATE_REMOVALS: Final = 100


class SentDocument(Params):
    """A document. `hash` identifies the file it was read from."""

    path: Path
    content: Annotated[str, Field(json_schema_extra={"maxLength": MAX_TEXT_BYTES})]
    hash: Annotated[str, Field(max_length=128)] = ""
    title: Annotated[str, Field(max_length=500)] = ""


class IngestDocuments(Params):
    """A path that the server may read, or the documents themselves."""

    path: Annotated[
        str | None,
        Field(min_length=1, max_length=4096, description="A file or folder, where the server may read it."),
    ] = None
    collection: Name
    recursive: Annotated[bool, Field(description="Also read folders inside the folder.")] = False
    documents: Annotated[list[SentDocument] | None, Field(max_length=1000)] = None
    remove: Annotated[list[Path] | None, Field(max_length=1000, description="Paths of documents to remove.")] = None
    tree: Annotated[
        str, Field(max_length=64, description="Identifies the folder tree that the documents were read from.")
    ] = ""


@lambda_function(
    table("Knowledge", "BatchGetItem", "BatchWriteItem", "GetItem", "PutItem", "Query", "UpdateItem"),
    EMBEDDING_INDEX,
    SPLITTING,
)
@method(
    "research-agent/ingest_documents",
    role="writer",
    errors=(NotFound, InvalidRequest, Conflict, TooLarge, Unavailable),
    example={
        "collection": "garden",
        "documents": [{"path": "moss.md", "content": "# Moss\n\nMoss grows where it is wet."}],
    },
    tool=McpTool(
        "Ingest documents",
        "sets",
        "Add documents or folders to a collection: Markdown, plain text, HTML, PDF, source code. Unchanged ones cost "
        "nothing, changed ones are replaced. A long ingestion returns a job_id; get_ingestion reports its progress.",
        text=render_ingestion_result,
    ),
)
def handler(params: IngestDocuments, caller: Caller) -> IngestionResult:
    """Ingest documents, or start a job if it takes long."""
    collection = collections(caller).require(params.collection, recorded_space())
    stored = documents(caller, collection)
    if params.path is not None:
        if params.documents is not None or params.remove is not None or params.tree:
            raise document_ambiguous()
        reader = runtime.file_source
        if reader is None:
            raise file_reading_disabled()
        listing = reader.find(params.path, recursive=params.recursive)
        if listing.is_folder:
            return job_accepted(
                jobs(caller).start_reading(collection, params.path, recursive=params.recursive), collection
            )
        new = [file.document() if isinstance(file, folder_sync.FoundFile) else file for file in listing.files]
        removed = folder_sync.missing_paths(stored.stored(), listing) if listing.absent else []
        if listing.absent and not removed:
            raise listing.absent
    elif params.documents is None and params.remove is None:
        raise document_missing()
    else:
        new = [_new_document(each, params.tree) for each in params.documents or []]
        removed = params.remove or []
    readable = [each for each in new if isinstance(each, NewKnowledgeDocument)]
    if is_long(stored, readable) or len(removed) > _MAX_IMMEDIATE_REMOVALS:
        return job_accepted(jobs(caller).start(collection, readable, removed), collection)
    ingestion = DocumentIngestion(stored)
    ingestion.add_all(new)
    ingestion.remove(removed)
    collections(caller).require_unchanged(collection)
    if params.path is not None:
        require_ingested(ingestion.tally, params.path)
    return ingestion_result(ingestion.tally, collection)


def _new_document(sent: SentDocument, tree: str) -> NewKnowledgeDocument:
    digest = sent.hash or hashlib.sha256(sent.content.encode("utf-8")).hexdigest()
    return NewKnowledgeDocument(sent.path, sent.content, hash=digest, title=sent.title, tree=tree)
