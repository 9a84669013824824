"""Results of the methods that ingest, and that manage collections and projects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shared.knowledge.errors import unreadable
from shared.knowledge.models import CollectionType, DocumentFailure, FileNote, JobStatus, Project, StoredDocument

if TYPE_CHECKING:
    from shared.knowledge.models import Collection, IngestionTally


@dataclass(frozen=True, slots=True)
class IngestionResult:
    """The outcome of the documents, or the job that ingests them. `pending` documents are not searchable yet."""

    status: Literal["success", "accepted"]
    collection: str
    message: str
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    chunks: int = 0
    pending: int = 0
    failed: list[DocumentFailure] | None = None
    skipped: dict[str, int] | None = None
    notes: list[FileNote] | None = None
    job_id: str | None = None


@dataclass(frozen=True, slots=True)
class IngestionProgress:
    """The progress of an ingestion: the documents processed out of `total`, and their outcomes."""

    job_id: str
    status: JobStatus
    collection: str
    message: str
    total: int
    processed: int
    added: int
    updated: int
    unchanged: int
    removed: int
    chunks: int
    pending: int
    failed: list[DocumentFailure]
    skipped: dict[str, int]
    notes: list[FileNote]
    created_at: str
    updated_at: str


CollectionAction = Literal["create", "list", "delete", "info"]


@dataclass(frozen=True, slots=True)
class CollectionInfo:
    """A collection, its size, and the embedding space of its passages."""

    name: str
    type: CollectionType
    documents: int
    chunks: int
    model: str
    dimensions: int
    created_at: str
    projects: list[str]


@dataclass(frozen=True, slots=True)
class CollectionsResult:
    """The result of an action: the collection or all collections, and the documents of a described collection."""

    status: Literal["success"]
    action: CollectionAction
    message: str
    collection: CollectionInfo | None = None
    collections: list[CollectionInfo] | None = None
    documents: list[StoredDocument] | None = None
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """A page of a collection's documents."""

    documents: list[StoredDocument]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Removal:
    """A document that is no longer in its collection."""

    status: Literal["success"]
    collection: str
    path: str
    message: str


ProjectAction = Literal["create", "link", "unlink", "set-defaults", "list", "info"]


@dataclass(frozen=True, slots=True)
class ProjectsResult:
    """The result of an action: the changed project or all projects."""

    status: Literal["success"]
    action: ProjectAction
    message: str
    project: Project | None = None
    projects: list[Project] | None = None


def ingestion_result(tally: IngestionTally, collection: Collection) -> IngestionResult:
    """Return the result of a finished ingestion."""
    return IngestionResult("success", collection.name, summarize_tally(tally), **tally.outcomes())


def require_ingested(tally: IngestionTally, path: str) -> None:
    """Raise the reason why the single document of an ingestion was left out."""
    for failure in tally.failed:
        raise unreadable(failure.path, failure.reason)
    for kind in tally.skipped:
        raise unreadable(path, f"holds no text: {kind} are skipped")


def job_accepted(job_id: str, collection: Collection) -> IngestionResult:
    """Return the result of an ingestion that a worker carries out."""
    message = "This takes a while: call get_ingestion with this job_id to follow its progress."
    return IngestionResult("accepted", collection.name, message, job_id=job_id)


def summarize_tally(tally: IngestionTally) -> str:
    """Return a tally as a sentence."""
    counts = tally.outcomes() | {"failed": tally.failures}
    names = ("added", "updated", "unchanged", "removed", "failed")
    parts = [f"{counts[name]} {name}" for name in names if counts[name]]
    if tally.skipped:
        kinds = ", ".join(f"{count} {kind}" for kind, count in tally.skipped.items())
        parts.append(f"{sum(tally.skipped.values())} skipped ({kinds})")
    return f"Documents: {', '.join(parts) or 'none'}."
