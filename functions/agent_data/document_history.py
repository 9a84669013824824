"""agent-data/document_history: the audit log of a document: who changed it, when and how."""

from typing import Annotated

from pydantic import Field

from agent_data.stores import document_queries
from api.deployment import lambda_function, table
from api.handler import method
from shared.documents.models import AuditLogPage, DocumentId
from shared.rpc.caller import Caller
from shared.rpc.cursor import PageParams
from shared.rpc.errors import NotFound
from shared.rpc.mcp_catalog import McpTool


class DocumentHistory(PageParams):
    """The document, deleted or not, and a page of its history."""

    document_id: DocumentId
    newest_first: Annotated[bool, Field(description="List the newest change first.")] = False


@lambda_function(table("Documents", "GetItem", "Query"))
@method(
    "agent-data/document_history",
    role="reader",
    errors=(NotFound,),
    example={"document_id": "guide"},
    tool=McpTool(
        "Read a document's history",
        "reads",
        "List who changed a document, when and how, oldest first unless newest_first is true. Works for deleted "
        "documents too.",
    ),
)
def handler(params: DocumentHistory, caller: Caller) -> AuditLogPage:
    """List the changes, oldest or newest first."""
    return document_queries(caller).history(
        params.document_id, params.limit, params.cursor, newest_first=params.newest_first
    )
