"""agent-data/document_history: who changed a document, when and how: the audit log."""

from __future__ import annotations

from agent_data import DocumentPageParams, document_queries
from api.handler import Caller, method
from shared.documents.models import AuditLogPage, DocumentId
from shared.rpc.errors import NotFound
from shared.rpc.mcp_catalog import McpTool


class DocumentHistory(DocumentPageParams):
    """Of which document, deleted or not."""

    document_id: DocumentId


@method(
    "agent-data/document_history",
    role="reader",
    errors=(NotFound,),
    tool=McpTool(
        "Read a document's history",
        "reads",
        "List who changed a document, when and how, oldest first, also where it is deleted.",
    ),
)
def handler(params: DocumentHistory, caller: Caller) -> AuditLogPage:
    """List the changes, oldest first."""
    return document_queries(caller).history(params.document_id, params.limit, params.cursor)
