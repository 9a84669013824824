"""agent-data/restore_document: restore a deleted document, or cancel its scheduled deletion."""

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


class RestoreDocument(DocumentWriteParams):
    """The document; `recursive` also restores what was deleted together with it."""

    recursive: bool = False


@lambda_function(
    table("Documents", "BatchGetItem", "ConditionCheckItem", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"),
    EMBEDDING_INDEX,
    SPLITTING,
)
@method(
    "agent-data/restore_document",
    role="writer",
    errors=(NotFound, Conflict),
    example={"document_id": "lost-notes"},
    tool=McpTool(
        "Restore a document",
        "sets",
        "Restore a deleted document to its position; recursive: true also restores what was deleted with it. Or "
        "cancel a scheduled deletion, of everything that it would take.",
    ),
)
def handler(params: RestoreDocument, caller: Caller) -> WriteResult:
    """Restore the document to its position."""
    work = unit_of_work(caller)
    request = params.write_request("restore_document", caller)
    result = deletion.restore(work, request, params.document_id, recursive=params.recursive)
    index_immediately(work)
    return result
