"""What a document or the tree does not allow, in the contract's words."""

from __future__ import annotations

from shared.rpc.error_template import ErrorTemplate
from shared.rpc.errors import Conflict, NotFound


def no_document(document_id: str, field: str = "document_id") -> NotFound:
    """It does not exist, is deleted, or is another tenant's: the same answer."""
    return NotFound(
        f"Document not found: {document_id}",
        details={field: document_id},
        guidance="list_children shows the documents that exist, from parent_id 'root' down.",
    )


already_exists = ErrorTemplate(
    Conflict,
    "ALREADY_EXISTS",
    "A document with this id exists already: {document_id}",
    "Choose another id; a deleted document keeps its own, and restore_document brings it back.",
    ("document_id",),
)
stale_revision = ErrorTemplate(
    Conflict,
    "CONFLICT",
    "The document is at revision {current_revision}, not at {last_known_revision}.",
    "Read the document, apply the change to what it is now, and update with its revision.",
    ("document_id", "last_known_revision", "current_revision"),
)
too_busy = ErrorTemplate(
    Conflict,
    "CONFLICT",
    "Others are changing this document, or the part of the tree it is in, at the same time.",
    "Nothing was changed. Call again in a moment.",
    ("document_id",),
)
has_children = ErrorTemplate(
    Conflict,
    "HAS_CHILDREN",
    "The document has children that are not deleted.",
    "Move or delete them first, or delete everything below it with 'recursive'.",
    ("document_id",),
)
deleted_parent = ErrorTemplate(
    Conflict,
    "PARENT_DELETED",
    "The parent, or one above it, is deleted or to be deleted: {parent_id}",
    "Restore it first, or choose another parent.",
    ("parent_id",),
)
cycle = ErrorTemplate(
    Conflict,
    "CYCLE",
    "The new parent is the document itself, or stands somewhere below it.",
    "Choose a parent outside the document's own descendants.",
    ("document_id", "new_parent_id"),
)
too_deep = ErrorTemplate(
    Conflict,
    "TOO_DEEP",
    "The tree would become deeper than {max_depth} levels.",
    "Choose a parent nearer to the root.",
    ("parent_id", "max_depth"),
)
no_revision = ErrorTemplate(
    NotFound,
    "NOT_FOUND",
    "The document has no revision {revision}; it is at {current_revision}.",
    "document_history lists its revisions.",
    ("document_id", "revision", "current_revision"),
)
