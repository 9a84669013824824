"""Result of the methods that ingest documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shared.knowledge.errors import unreadable
from shared.knowledge.models import DocumentFailure

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
    job_id: str | None = None


def ingestion_result(tally: IngestionTally, collection: Collection) -> IngestionResult:
    """Return the result of a finished ingestion."""
    return IngestionResult(
        "success",
        collection.name,
        summarize_tally(tally),
        tally.added,
        tally.updated,
        tally.unchanged,
        tally.removed,
        tally.chunks,
        tally.pending,
        tally.failed,
    )


def require_ingested(tally: IngestionTally) -> None:
    """Raise the first failure, for methods that ingest a single document."""
    for failure in tally.failed:
        raise unreadable(failure.path, failure.reason)


def job_accepted(job_id: str, collection: Collection) -> IngestionResult:
    """Return the result of an ingestion that a worker carries out."""
    message = "This takes a while: call get_ingestion with this job_id to follow its progress."
    return IngestionResult("accepted", collection.name, message, job_id=job_id)


def summarize_tally(tally: IngestionTally) -> str:
    """Return a tally as a sentence."""
    parts = [
        f"{count} {name}"
        for name, count in (
            ("added", tally.added),
            ("updated", tally.updated),
            ("unchanged", tally.unchanged),
            ("removed", tally.removed),
            ("failed", tally.failures),
        )
        if count
    ]
    return f"Documents: {', '.join(parts) or 'none'}."
