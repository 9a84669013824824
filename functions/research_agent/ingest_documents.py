"""research-agent/ingest_documents: add documents or folders to a collection."""

import base64
import hashlib
from typing import Annotated, Final

from pydantic import Field

from api.deployment import EMBEDDING_INDEX, SPLITTING, lambda_function, table
from api.handler import method
from research_agent.index import documents
from research_agent.jobs import jobs
from research_agent.stores import collections
from shared.knowledge import folder_sync
from shared.knowledge.documents import CollectionDocuments
from shared.knowledge.errors import document_ambiguous, document_missing, document_too_large, file_reading_disabled
from shared.knowledge.ingestion import DocumentIngestion, is_long
from shared.knowledge.models import (
    MAX_TEXT_BYTES,
    MAX_UPLOAD_BYTES,
    DocumentFailure,
    Name,
    NewKnowledgeDocument,
    Path,
    SkippedFile,
    StoredFile,
    UploadedFile,
)
from shared.knowledge.recorded_space import recorded_space
from shared.knowledge.rendering import render_ingestion_result
from shared.knowledge.responses import IngestionResult, ingestion_result, job_accepted, require_ingested
from shared.platform.runtime import runtime
from shared.rpc.caller import Caller
from shared.rpc.errors import (
    Conflict,
    FieldProblem,
    InvalidParams,
    InvalidRequest,
    NotFound,
    TooLarge,
    Unavailable,
)
from shared.rpc.mcp_catalog import McpTool
from shared.rpc.method import Params

_MAX_IMMEDIATE_REMOVALS: Final = 100
_Input = NewKnowledgeDocument | StoredFile | DocumentFailure | SkippedFile


class SentDocument(Params):
    """A document. `hash` identifies the file it was read from."""

    path: Path
    content: Annotated[str | None, Field(json_schema_extra={"maxLength": MAX_TEXT_BYTES})] = None
    content_base64: Annotated[
        str | None, Field(description="Instead of content: the file itself, such as a PDF, up to 4 MiB.")
    ] = None
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
    sent: list[NewKnowledgeDocument | UploadedFile] = []
    new: list[_Input]
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
        sent = [_sent_document(number, each, params.tree) for number, each in enumerate(params.documents or [])]
        removed = params.remove or []
        new = _read_files(sent, stored)
    readable = [each for each in new if isinstance(each, NewKnowledgeDocument)]
    if len(new) < len(sent) or is_long(stored, readable) or len(removed) > _MAX_IMMEDIATE_REMOVALS:
        return job_accepted(jobs(caller).start(collection, sent or readable, removed), collection)
    ingestion = DocumentIngestion(stored)
    ingestion.add_all(new)
    ingestion.remove(removed)
    collections(caller).require_unchanged(collection)
    if params.path is not None:
        require_ingested(ingestion.tally, params.path)
    return ingestion_result(ingestion.tally, collection)


def _read_files(sent: list[NewKnowledgeDocument | UploadedFile], stored: CollectionDocuments) -> list[_Input]:
    """Return what each file is, or nothing if a worker has to read one."""
    if not any(isinstance(each, UploadedFile) for each in sent):
        return [each for each in sent if isinstance(each, NewKnowledgeDocument)]
    from shared.knowledge import uploads

    if any(uploads.takes_long(each, stored) for each in sent if isinstance(each, UploadedFile)):
        return []
    return [uploads.read(each, stored) if isinstance(each, UploadedFile) else each for each in sent]


def _sent_document(number: int, sent: SentDocument, tree: str) -> NewKnowledgeDocument | UploadedFile:
    field = f"documents.{number}.content"
    if (sent.content is None) == (sent.content_base64 is None):
        raise InvalidParams(FieldProblem(field=field, message="or content_base64 is required, and not both"))
    if sent.content is not None:
        digest = sent.hash or hashlib.sha256(sent.content.encode("utf-8")).hexdigest()
        return NewKnowledgeDocument(sent.path, sent.content, hash=digest, title=sent.title, tree=tree)
    try:
        content = base64.b64decode(sent.content_base64 or "", validate=True)
    except ValueError:
        raise InvalidParams(FieldProblem(field=f"{field}_base64", message="is not base64")) from None
    if len(content) > MAX_UPLOAD_BYTES:
        raise document_too_large(sent.path, MAX_UPLOAD_BYTES)
    digest = sent.hash or hashlib.sha256(content).hexdigest()
    return UploadedFile(sent.path, content, digest, sent.title, tree)
