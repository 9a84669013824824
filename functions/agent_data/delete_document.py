"""agent-data/delete_document: delete a document, softly, now or at a moment to come."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agent_data import ChangeOfDocument, changes
from agent_data.indexing_at_once import index_at_once
from doors.direct import Caller, method
from shared.documents import deleting
from shared.documents.models import Written
from shared.documents.moments import Moment
from shared.rpc.errors import Conflict, NotFound
from shared.rpc.offers import Tool


class DeleteDocument(ChangeOfDocument):
    """Which document, when and why; `recursive` takes everything below it along."""

    reason: Annotated[str, Field(max_length=2048)] | None = None
    deleted_by: Annotated[str, Field(max_length=256)] | None = None
    delete_at: Moment | None = None
    recursive: bool = False


@method(
    "agent-data/delete_document",
    role="writer",
    errors=(NotFound, Conflict),
    tool=Tool(
        "Delete a document",
        "removes",
        "Delete a document, now or at delete_at. It can be restored. One with children needs recursive: true, "
        "which deletes them too.",
    ),
)
def handler(params: DeleteDocument, caller: Caller) -> Written:
    """Hide the document from that moment on; its history stays, and it can be restored."""
    deletion = deleting.Deletion(params.delete_at, params.reason, params.deleted_by, params.recursive)
    changed = changes(caller)
    written = deleting.delete(changed, params.request("delete_document", caller), params.document_id, deletion)
    index_at_once(changed)
    return written
