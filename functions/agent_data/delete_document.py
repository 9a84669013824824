"""agent-data/delete_document: delete a document softly, now or at a given time."""

from typing import Annotated

from pydantic import Field

from agent_data.stores import unit_of_work
from agent_data.writes import DocumentWriteParams
from api.deployment import EMBEDDING_INDEX, SPLITTING, lambda_function, table
from api.handler import method
from shared.documents import deletion
from shared.documents.immediate_indexing import index_immediately
from shared.documents.models import WriteResult
from shared.rpc.caller import Caller
from shared.rpc.errors import Conflict, NotFound
from shared.rpc.mcp_catalog import McpTool
from shared.rpc.timestamps import Timestamp


class DeleteDocument(DocumentWriteParams):
    """The document, and when and why to delete it; `recursive` includes everything below it."""

    reason: Annotated[str, Field(max_length=2048)] | None = None
    deleted_by: Annotated[str, Field(max_length=256)] | None = None
    delete_at: Annotated[Timestamp | None, Field(description="time of the deletion, by default now")] = None
    recursive: bool = False


@lambda_function(
    table("Documents", "BatchGetItem", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"),
    EMBEDDING_INDEX,
    SPLITTING,
)
@method(
    "agent-data/delete_document",
    role="writer",
    errors=(NotFound, Conflict),
    example={"document_id": "old-notes", "reason": "no longer true"},
    tool=McpTool(
        "Delete a document",
        "removes",
        "Delete a document, now or at delete_at. It can be restored. If it has children, set recursive: true to "
        "delete them too.",
    ),
)
def handler(params: DeleteDocument, caller: Caller) -> WriteResult:
    """Delete the document. Its history stays, and it can be restored."""
    requested = deletion.Deletion(params.delete_at, params.reason, params.deleted_by, params.recursive)
    work = unit_of_work(caller)
    result = deletion.delete(work, params.write_request("delete_document", caller), params.document_id, requested)
    index_immediately(work)
    return result
