"""What a document or the tree does not allow, in the contract's words."""

from __future__ import annotations

from shared.rpc.errors import Conflict, NotFound


def no_document(document_id: str, field: str = "document_id") -> NotFound:
    """It does not exist, is deleted, or is another tenant's: the same answer."""
    return NotFound(
        f"Document not found: {document_id}",
        details={field: document_id},
        guidance="list_children shows the documents that exist, from parent_id 'root' down.",
    )


def already_exists(document_id: str) -> Conflict:
    """The id is taken, though perhaps by a document that is deleted."""
    return Conflict(
        f"A document with this id exists already: {document_id}",
        details={"document_id": document_id},
        guidance="Choose another id; a deleted document keeps its own, and restore_document brings it back.",
        code="ALREADY_EXISTS",
    )


def stale_revision(document_id: str, known: int, current: int) -> Conflict:
    """Somebody else has written since the caller read."""
    return Conflict(
        f"The document is at revision {current}, not at {known}.",
        details={"document_id": document_id, "last_known_revision": known, "current_revision": current},
        guidance="Read the document, apply the change to what it is now, and update with its revision.",
    )


def too_busy(document_id: str) -> Conflict:
    """Others changed what this write rests on, each time it was tried."""
    return Conflict(
        "Others are changing this document, or the part of the tree it is in, at the same time.",
        details={"document_id": document_id},
        guidance="Nothing was changed. Call again in a moment.",
    )


def has_children(document_id: str) -> Conflict:
    """It cannot be deleted alone."""
    return Conflict(
        "The document has children that are not deleted.",
        details={"document_id": document_id},
        guidance="Move or delete them first, or delete everything below it with 'recursive'.",
        code="HAS_CHILDREN",
    )


def deleted_parent(parent_id: str) -> Conflict:
    """Nothing can be put under what is deleted, or moved whole under what is about to be."""
    return Conflict(
        f"The parent, or one above it, is deleted or to be deleted: {parent_id}",
        details={"parent_id": parent_id},
        guidance="Restore it first, or choose another parent.",
        code="PARENT_DELETED",
    )


def cycle(document_id: str, parent_id: str) -> Conflict:
    """A document cannot come under itself."""
    return Conflict(
        "The new parent is the document itself, or stands somewhere below it.",
        details={"document_id": document_id, "new_parent_id": parent_id},
        guidance="Choose a parent outside the document's own descendants.",
        code="CYCLE",
    )


def too_deep(parent_id: str, levels: int) -> Conflict:
    """The tree ends at a depth."""
    return Conflict(
        f"The tree would become deeper than {levels} levels.",
        details={"parent_id": parent_id, "max_depth": levels},
        guidance="Choose a parent nearer to the root.",
        code="TOO_DEEP",
    )


def no_revision(document_id: str, revision: int, current: int) -> NotFound:
    """The document has not come so far."""
    return NotFound(
        f"The document has no revision {revision}; it is at {current}.",
        details={"document_id": document_id, "revision": revision, "current_revision": current},
        guidance="document_history lists its revisions.",
    )
