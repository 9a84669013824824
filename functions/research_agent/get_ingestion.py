"""research-agent/get_ingestion: how far a long ingestion is, and what failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from doors.direct import Caller, Params, method
from research_agent import jobs
from research_agent.ingested import said
from research_agent.markdown import ingestion_shown
from shared.knowledge.models import Failure, JobStatus
from shared.rpc.errors import NotFound
from shared.rpc.offers import Tool


class GetIngestion(Params):
    """Which ingestion."""

    job_id: Annotated[str, Field(min_length=1, max_length=64)]


@dataclass(frozen=True, slots=True)
class IngestionProgress:
    """How many documents of `total` have been seen to, and what has become of them."""

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
    failed: list[Failure]
    created_at: str
    updated_at: str


@method(
    "research-agent/get_ingestion",
    role="reader",
    errors=(NotFound,),
    tool=Tool(
        "Get an ingestion's progress",
        "reads",
        "Tell how far a long ingestion is, and which documents failed and why.",
        text=ingestion_shown,
    ),
)
def handler(params: GetIngestion, caller: Caller) -> IngestionProgress:
    """Look up a job."""
    job = jobs(caller).require(params.job_id)
    tally = job.tally
    return IngestionProgress(
        job.id,
        job.status,
        job.collection,
        job.message or said(tally),
        max(job.total, tally.documents),
        tally.documents,
        tally.added,
        tally.updated,
        tally.unchanged,
        tally.removed,
        tally.chunks,
        tally.pending,
        tally.failed,
        job.created_at,
        job.updated_at,
    )
