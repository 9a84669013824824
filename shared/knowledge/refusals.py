"""What collections, documents, projects and queries do not allow, in words for the caller.

A code's first word is the category that seed 004 gives a number to: COLLECTION_, DOCUMENT_, QUERY_, CONFIGURATION_.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.rpc.errors import Conflict, InvalidRequest, NotFound, TooLarge, Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence


def no_collection(name: str) -> NotFound:
    """It does not exist, or is another tenant's: the same answer."""
    return NotFound(
        f"Collection not found: {name}",
        code="COLLECTION_NOT_FOUND",
        details={"collection": name},
        guidance="manage_collections with action 'list' shows those that exist; action 'create' makes one.",
    )


def collection_exists(name: str) -> Conflict:
    """The name is taken."""
    return Conflict(
        f"Collection already exists: {name}",
        code="COLLECTION_EXISTS",
        details={"collection": name},
        guidance="Use the one there is, or another name; manage_collections with action 'info' tells what it holds.",
    )


def collection_incomplete(action: str, missing: str) -> InvalidRequest:
    """An action lacks what it needs."""
    return InvalidRequest(
        f"The action '{action}' needs '{missing}'.",
        code="COLLECTION_PARAMETER_MISSING",
        details=[{"field": missing, "message": "is required"}],
        guidance=f"Call again with '{missing}'; nothing was changed.",
    )


def no_document(path: str, reason: str) -> NotFound:
    """There is nothing to read under this path."""
    return NotFound(
        f"Document not found: {path} {reason}",
        code="DOCUMENT_NOT_FOUND",
        details={"path": path, "reason": reason},
        guidance="Check the path; it must lie under the allowed roots, which --root (KHO_ROOT) names.",
    )


def path_forbidden(path: str) -> InvalidRequest:
    """The path leads to where nothing may be read."""
    return InvalidRequest(
        f"This path leads outside the allowed roots: {path}",
        code="DOCUMENT_PATH_FORBIDDEN",
        details={"path": path},
        guidance="Give a path under the allowed roots, or allow its folder with --root (KHO_ROOT).",
    )


def unreadable(path: str, reason: str) -> InvalidRequest:
    """The one document that was asked for cannot be read."""
    return InvalidRequest(
        f"{path} {reason}",
        code="DOCUMENT_UNREADABLE",
        details={"path": path, "reason": reason},
        guidance="Markdown, plain text, HTML, source code and PDF with text can be read, in UTF-8 or UTF-16.",
    )


def document_missing() -> InvalidRequest:
    """Nothing was given to ingest."""
    return InvalidRequest(
        "There is nothing to ingest: give 'path' or 'documents'.",
        code="DOCUMENT_PARAMETER_MISSING",
        details=[{"field": "documents", "message": "is required where there is no path"}],
        guidance="Send 'documents': [{'path', 'content'}], or a 'path' where the server may read this machine's files.",
    )


def no_reading_here() -> InvalidRequest:
    """This backend cannot see the caller's disk."""
    return InvalidRequest(
        "This server reads no files: it cannot see the caller's disk.",
        code="CONFIGURATION_NO_ROOTS",
        details=[
            {"field": "path", "message": "can be read only by 'kho serve' on a loopback address, under its roots"}
        ],
        guidance="Send 'documents': [{'path', 'content'}], or use research-agent, which reads files and sends them.",
    )


def document_too_large(path: str, limit: int) -> TooLarge:
    """Its text is more than a document holds."""
    return TooLarge(
        f"{path} is larger than {limit >> 20} MiB.",
        code="DOCUMENT_TOO_LARGE",
        details={"path": path, "limit_bytes": limit},
        guidance="Send it in parts.",
    )


def no_project(name: str) -> NotFound:
    """It does not exist, or is another tenant's: the same answer."""
    return NotFound(
        f"Project not found: {name}",
        code="CONFIGURATION_NO_PROJECT",
        details={"project_name": name},
        guidance="manage_projects with action 'list' shows those that exist; action 'create' makes one.",
    )


def project_exists(name: str) -> Conflict:
    """The name is taken."""
    return Conflict(
        f"Project already exists: {name}",
        code="CONFIGURATION_PROJECT_EXISTS",
        details={"project_name": name},
        guidance="Use the one there is, or another name; manage_projects with action 'info' shows its links.",
    )


def project_incomplete(action: str, missing: str) -> InvalidRequest:
    """An action lacks what it needs."""
    return InvalidRequest(
        f"The action '{action}' needs '{missing}'.",
        code="CONFIGURATION_PARAMETER_MISSING",
        details=[{"field": missing, "message": "is required"}],
        guidance=f"Call again with '{missing}'; nothing was changed.",
    )


def not_linked(project: str, collections: Sequence[str]) -> Conflict:
    """Defaults are chosen among what is linked."""
    named = ", ".join(collections)
    return Conflict(
        f"The project '{project}' is not linked to: {named}",
        code="CONFIGURATION_NOT_LINKED",
        details={"project_name": project, "collections": list(collections)},
        guidance="Link them first: manage_projects with action 'link'.",
    )


def other_embedding(name: str, recorded: str, current: str) -> Conflict:
    """The collection's vectors lie in another space than the current model's."""
    return Conflict(
        f"The collection '{name}' was embedded with {recorded}; the current setting is {current}.",
        code="CONFIGURATION_EMBEDDING_MISMATCH",
        details={"collection": name, "recorded": recorded, "current": current},
        guidance="Set the model back, or run 'kho reindex' to embed everything with the current one.",
    )


def query_invalid(message: str) -> InvalidRequest:
    """The query cannot be searched for."""
    return InvalidRequest(
        f"Invalid query: it {message}.",
        code="QUERY_INVALID",
        details=[{"field": "query", "message": message}],
        guidance="Ask in a few words or a sentence, of at most 2,048 characters.",
    )


def nothing_to_search() -> NotFound:
    """There is no collection at all."""
    return NotFound(
        "There are no collections to search yet.",
        code="COLLECTION_NOT_FOUND",
        details={"collections": []},
        guidance="Make one with manage_collections (action 'create'), and fill it with ingest_documents.",
    )


def not_searchable() -> Unavailable:
    """The index or the model behind it does not answer."""
    return Unavailable(
        "The knowledge base cannot be searched at the moment.",
        code="QUERY_INDEX_UNAVAILABLE",
        guidance="Ask again in a moment. Nothing is lost: what was written meanwhile is indexed when it is back.",
    )


def no_job(job_id: str) -> NotFound:
    """It does not exist, is long over, or is another tenant's: the same answer."""
    return NotFound(
        f"Ingestion not found: {job_id}",
        code="DOCUMENT_JOB_NOT_FOUND",
        details={"job_id": job_id},
        guidance="Use the job_id that ingest_documents answered; jobs are kept for 7 days after their end.",
    )
