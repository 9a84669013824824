"""agent-data/update_document: change a document's content, metadata or display flag."""

from typing import Annotated

from pydantic import Field

from agent_data.stores import unit_of_work
from agent_data.writes import DocumentWriteParams
from api.deployment import EMBEDDING_INDEX, SPLITTING, lambda_function, table
from api.handler import method
from shared.documents import revisions
from shared.documents.immediate_indexing import index_immediately
from shared.documents.models import Body, Metadata, MimeType, PatchField, WriteResult
from shared.rpc.caller import Caller
from shared.rpc.errors import Conflict, NotFound
from shared.rpc.mcp_catalog import McpTool
from shared.rpc.method import WHOLE, Params


class ContentPatchParams(Params):
    """The new text. Without `mime_type` its MIME type stays the same."""

    mime_type: MimeType | None = None
    body: Body


class PatchParams(Params):
    """The new values of the given fields."""

    content: ContentPatchParams | None = None
    metadata: Metadata | None = None
    is_human_readable: bool | None = None


class UpdateDocument(DocumentWriteParams):
    """The patch, its mask, and the revision to apply it to. Without a mask every field of the patch is applied."""

    patch: PatchParams
    update_mask: Annotated[list[PatchField], Field(min_length=1, max_length=3)] | None = None
    last_known_revision: Annotated[int, Field(ge=1, le=2**53), WHOLE] | None = None


@lambda_function(
    table("Documents", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"), EMBEDDING_INDEX, SPLITTING
)
@method(
    "agent-data/update_document",
    role="writer",
    errors=(NotFound, Conflict),
    example={"document_id": "guide", "patch": {"content": {"body": "Ferns like shade, and water in the morning."}}},
    tool=McpTool(
        "Update a document",
        "replaces",
        "Replace a document's text, metadata or display flag with those in 'patch'. Give the revision that "
        "you read as last_known_revision: if it has changed since, the call fails with CONFLICT and changes "
        "nothing; then read again.",
    ),
)
def handler(params: UpdateDocument, caller: Caller) -> WriteResult:
    """Apply the patch, unless the document has changed since the caller read it."""
    content = params.patch.content
    patch = revisions.Patch(
        mime_type=content.mime_type if content else None,
        body=content.body if content else None,
        metadata=params.patch.metadata,
        is_human_readable=params.patch.is_human_readable,
        mask=params.update_mask,
    )
    work = unit_of_work(caller)
    request = params.write_request("update_document", caller)
    result = revisions.update(work, request, params.document_id, patch, params.last_known_revision)
    index_immediately(work)
    return result
