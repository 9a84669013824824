"""agent-data/get_document: one document at its current or an earlier revision."""

from typing import Annotated

from pydantic import Field

from agent_data.stores import document_queries
from api.deployment import lambda_function, table
from api.handler import method
from shared.documents.models import Document, DocumentId
from shared.rpc.caller import Caller
from shared.rpc.errors import NotFound
from shared.rpc.mcp_catalog import McpTool
from shared.rpc.method import WHOLE, Params


class GetDocument(Params):
    """The document, and the revision if not the current one."""

    document_id: DocumentId
    revision: Annotated[int, Field(ge=1, le=999_999_999_999), WHOLE] | None = None


@lambda_function(table("Documents", "GetItem", "Query"))
@method(
    "agent-data/get_document",
    role="reader",
    errors=(NotFound,),
    example={"document_id": "guide"},
    tool=McpTool(
        "Read a document",
        "reads",
        "Read one document by its id: its text, metadata, parent and revision; with 'revision', as of then.",
    ),
)
def handler(params: GetDocument, caller: Caller) -> Document:
    """Get a document that is not deleted."""
    return document_queries(caller).document(params.document_id, params.revision)
