"""The errors of documents and of the document tree."""

from typing import Any

from shared.rpc.error_template import ErrorTemplate
from shared.rpc.errors import Conflict, NotFound, TooLarge


def no_document(document_id: str, field: str = "document_id") -> NotFound:
    """Build the one error for a document that does not exist, is deleted or belongs to another tenant."""
    return NotFound(
        f"Document not found: {document_id}",
        details={field: document_id},
        guidance="list_children shows the documents that exist, from parent_id 'root' down.",
    )


def no_single_match(field: str, problem: str, candidates: list[dict[str, Any]]) -> Conflict:
    """Build the error for an edit whose place is missing or not the only one, with the lines that it may mean."""
    return Conflict(
        f"{field}: {problem}",
        code="NO_SINGLE_MATCH",
        details={"field": field, "candidates": candidates},
        guidance="Nothing was changed. Name the place so that it is the only one: copy more of the text around it, or "
        "give 'count' or the whole path of headings.",
    )


def body_too_large(limit: int) -> TooLarge:
    """Build the error for an edit after which the text would be too large."""
    return TooLarge(
        f"The text would have more than {limit} bytes, the most of a document.",
        details={"limit": limit},
        guidance="Nothing was changed. Continue in another document, or shorten this one first.",
    )


already_exists = ErrorTemplate(
    Conflict,
    "ALREADY_EXISTS",
    "A document with this id exists already: {document_id}",
    "Choose another id. A deleted document keeps its id; restore_document brings it back.",
)
stale_revision = ErrorTemplate(
    Conflict,
    "CONFLICT",
    "The document is at revision {current_revision}, not at {last_known_revision}.",
    "Read the document, apply the change to its current state, and update with its revision.",
    ("document_id", "last_known_revision", "current_revision"),
)
too_busy = ErrorTemplate(
    Conflict,
    "CONFLICT",
    "This document, or its part of the tree, is being changed concurrently.",
    "Nothing was changed. Call again in a moment.",
    ("document_id",),
)
has_children = ErrorTemplate(
    Conflict,
    "HAS_CHILDREN",
    "The document has children that are not deleted.",
    "Move or delete them first, or set 'recursive' to delete everything below it.",
    ("document_id",),
)
deleted_parent = ErrorTemplate(
    Conflict,
    "PARENT_DELETED",
    "The parent, or one of its ancestors, is deleted or scheduled for deletion: {parent_id}",
    "Restore it first, or choose another parent.",
)
cycle = ErrorTemplate(
    Conflict,
    "CYCLE",
    "The new parent is the document itself or one of its descendants.",
    "Choose a parent that is not below the document.",
    ("document_id", "new_parent_id"),
)
too_deep = ErrorTemplate(
    Conflict,
    "TOO_DEEP",
    "The tree would be deeper than {max_depth} levels.",
    "Choose a parent closer to the root.",
    ("parent_id", "max_depth"),
)
no_revision = ErrorTemplate(
    NotFound,
    "NOT_FOUND",
    "The document has no revision {revision}; it is at {current_revision}.",
    "document_history lists its revisions.",
    ("document_id", "revision", "current_revision"),
)
idempotency_mismatch = ErrorTemplate(
    Conflict,
    "IDEMPOTENCY_MISMATCH",
    "This request_id was used for another request.",
    "Use a new request_id for a new request; the same one only to repeat the same request.",
    ("request_id",),
)
in_progress = ErrorTemplate(
    Conflict,
    "IN_PROGRESS",
    "The first request with this request_id is still running.",
    "Call again in a moment with the same request_id and payload.",
    ("request_id",),
    always={"retryable": True},
)
