"""What methods that bring documents in answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shared.knowledge.errors import unreadable
from shared.knowledge.models import DocumentFailure

if TYPE_CHECKING:
    from shared.knowledge.models import Collection, IngestionTally


@dataclass(frozen=True, slots=True)
class IngestionResult:
    """What has become of the documents, or the job that brings them in; `pending` ones are not searchable yet."""

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
    """That it is done."""
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
    """Refuse what failed where it was all that was to be brought in."""
    for failure in tally.failed:
        raise unreadable(failure.path, failure.reason)


def job_accepted(job_id: str, collection: Collection) -> IngestionResult:
    """That a worker does it."""
    message = "This takes a while: get_ingestion with this job_id tells how far it is."
    return IngestionResult("accepted", collection.name, message, job_id=job_id)


def summarize_tally(tally: IngestionTally) -> str:
    """A tally in a sentence."""
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
