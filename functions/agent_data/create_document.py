"""agent-data/create_document: create a document in the tree."""

from typing import Annotated

from pydantic import Field

from agent_data.stores import unit_of_work
from agent_data.writes import WriteParams
from api.deployment import EMBEDDING_INDEX, SPLITTING, lambda_function, table
from api.handler import method
from shared.documents import commands
from shared.documents.immediate_indexing import index_immediately
from shared.documents.models import Body, Metadata, MimeType, NewDocumentId, ParentId, WriteResult
from shared.rpc.caller import Caller
from shared.rpc.errors import Conflict, NotFound
from shared.rpc.mcp_catalog import McpTool
from shared.rpc.method import Params
from shared.rpc.timestamps import Timestamp


class ContentParams(Params):
    """The text and its MIME type."""

    mime_type: MimeType = "text/markdown"
    body: Body


class CreateDocument(WriteParams):
    """The new document and its parent; 'root' is the top of the tree."""

    document_id: NewDocumentId
    parent_id: ParentId
    content: ContentParams
    metadata: Annotated[Metadata, Field(default_factory=dict)]
    is_human_readable: bool = True
    created_at: Timestamp | None = None


@lambda_function(
    table("Documents", "BatchGetItem", "ConditionCheckItem", "GetItem", "PutItem", "Query", "UpdateItem"),
    EMBEDDING_INDEX,
    SPLITTING,
)
@method(
    "agent-data/create_document",
    role="writer",
    errors=(NotFound, Conflict),
    example={
        "request_id": "3f0c1a52-8a77-4ab1-9d35-6f1f3b1e0c11",
        "document_id": "new-notes",
        "parent_id": "guide",
        "content": {"mime_type": "text/markdown", "body": "# Moss\n\nMoss grows where it is wet."},
        "metadata": {"title": "Moss", "tags": ["garden"]},
    },
    tool=McpTool(
        "Create a document",
        "adds",
        "Create a document below a parent in the tree of shared documents ('root' is the top), as its last "
        "child. Choose an unused document_id; one that is taken fails with ALREADY_EXISTS.",
    ),
)
def handler(params: CreateDocument, caller: Caller) -> WriteResult:
    """Create a document as the last child of its parent."""
    new = commands.NewDocument(
        document_id=params.document_id,
        parent_id=params.parent_id,
        mime_type=params.content.mime_type,
        body=params.content.body,
        metadata=params.metadata,
        is_human_readable=params.is_human_readable,
        created_at=params.created_at,
    )
    work = unit_of_work(caller)
    result = commands.create(work, params.write_request("create_document", caller), new)
    index_immediately(work)
    return result
