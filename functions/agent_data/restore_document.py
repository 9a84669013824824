"""agent-data/restore_document: bring a deleted document back, or call off a deletion to come."""

from __future__ import annotations

from agent_data import DocumentWriteParams, unit_of_work
from api.handler import Caller, method
from shared.documents import deletion
from shared.documents.models import WriteResult
from shared.rpc.errors import Conflict, NotFound
from shared.rpc.mcp_catalog import McpTool
from shared.services.immediate_indexing import index_immediately


class RestoreDocument(DocumentWriteParams):
    """Which document; `recursive` brings back what was deleted together with it."""

    recursive: bool = False


@method(
    "agent-data/restore_document",
    role="writer",
    errors=(NotFound, Conflict),
    tool=McpTool(
        "Restore a document",
        "sets",
        "Bring back a deleted document to its place, or call off a deletion to come. recursive: true brings "
        "back what was deleted with it.",
    ),
)
def handler(params: RestoreDocument, caller: Caller) -> WriteResult:
    """Restore the document to the place that it had."""
    changed = unit_of_work(caller)
    request = params.request("restore_document", caller)
    written = deletion.restore(changed, request, params.document_id, recursive=params.recursive)
    index_immediately(changed)
    return written
