"""agent-data/restore_document: bring a deleted document back, or call off a deletion to come."""

from __future__ import annotations

from agent_data import ChangeOfDocument, changes
from agent_data.indexing_at_once import index_at_once
from doors.direct import Caller, method
from shared.documents import deleting
from shared.documents.models import Written
from shared.rpc.errors import Conflict, NotFound
from shared.rpc.offers import Tool


class RestoreDocument(ChangeOfDocument):
    """Which document; `recursive` brings back what was deleted together with it."""

    recursive: bool = False


@method(
    "agent-data/restore_document",
    role="writer",
    errors=(NotFound, Conflict),
    tool=Tool(
        "Restore a document",
        "sets",
        "Bring back a deleted document to its place, or call off a deletion to come. recursive: true brings "
        "back what was deleted with it.",
    ),
)
def handler(params: RestoreDocument, caller: Caller) -> Written:
    """Restore the document to the place that it had."""
    changed = changes(caller)
    request = params.request("restore_document", caller)
    written = deleting.restore(changed, request, params.document_id, recursive=params.recursive)
    index_at_once(changed)
    return written
