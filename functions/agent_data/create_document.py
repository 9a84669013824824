"""agent-data/create_document: create a document in the tree."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agent_data import Change, changes
from agent_data.indexing_at_once import index_at_once
from doors.direct import Caller, Params, method
from shared.documents import writing
from shared.documents.models import Body, Metadata, MimeType, NewDocumentId, ParentId, Written
from shared.documents.moments import Moment
from shared.rpc.errors import Conflict, NotFound
from shared.rpc.offers import Tool


class GivenContent(Params):
    """The text, and what kind of text it is."""

    mime_type: MimeType = "text/markdown"
    body: Body


class CreateDocument(Change):
    """The document, and its parent; 'root' is the top of the tree."""

    document_id: NewDocumentId
    parent_id: ParentId
    content: GivenContent
    metadata: Annotated[Metadata, Field(default_factory=dict)]
    is_human_readable: bool = True
    created_at: Moment | None = None


@method(
    "agent-data/create_document",
    role="writer",
    errors=(NotFound, Conflict),
    tool=Tool(
        "Create a document",
        "adds",
        "Create a document below a parent in the tree of shared documents ('root' is the top), as its last "
        "child. Choose a document_id that nobody has taken; a taken one gets ALREADY_EXISTS.",
    ),
)
def handler(params: CreateDocument, caller: Caller) -> Written:
    """Create a document as the last child of its parent."""
    new = writing.NewDocument(
        document_id=params.document_id,
        parent_id=params.parent_id,
        mime_type=params.content.mime_type,
        body=params.content.body,
        metadata=params.metadata,
        is_human_readable=params.is_human_readable,
        created_at=params.created_at,
    )
    changed = changes(caller)
    written = writing.create(changed, params.request("create_document", caller), new)
    index_at_once(changed)
    return written
