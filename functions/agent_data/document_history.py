"""agent-data/document_history: who changed a document, when and how: the audit log."""

from __future__ import annotations

from agent_data import reading
from agent_data.paging import Paged
from doors.direct import Caller, method
from shared.documents.models import DocumentId, History
from shared.rpc.errors import NotFound
from shared.rpc.offers import Tool


class DocumentHistory(Paged):
    """Of which document, deleted or not."""

    document_id: DocumentId


@method(
    "agent-data/document_history",
    role="reader",
    errors=(NotFound,),
    tool=Tool(
        "Read a document's history",
        "reads",
        "List who changed a document, when and how, oldest first, also where it is deleted.",
    ),
)
def handler(params: DocumentHistory, caller: Caller) -> History:
    """List the changes, oldest first."""
    return reading(caller).history(params.document_id, params.limit, params.cursor)
