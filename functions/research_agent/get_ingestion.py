"""research-agent/get_ingestion: report the progress of a long ingestion, and its failures."""

from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import Field

from api.deployment import lambda_function, table
from api.handler import method
from research_agent.jobs import jobs
from shared.knowledge.ingestion_jobs import STALLED_SECONDS
from shared.knowledge.rendering import render_progress
from shared.knowledge.responses import IngestionProgress, summarize_tally
from shared.rpc.caller import Caller
from shared.rpc.errors import NotFound
from shared.rpc.mcp_catalog import McpTool
from shared.rpc.method import Params

_STALLED: Final = (
    f"Nothing has happened for {STALLED_SECONDS // 60} minutes. It waits for other ingestions, or was given up. "
    "If it does not go on, ingest again: documents that were added are skipped."
)


class GetIngestion(Params):
    """The id of the ingestion job."""

    job_id: Annotated[str, Field(min_length=1, max_length=64)]


@lambda_function(table("Knowledge", "GetItem"))
@method(
    "research-agent/get_ingestion",
    role="reader",
    errors=(NotFound,),
    example={"job_id": "watering"},
    tool=McpTool(
        "Get an ingestion's progress",
        "reads",
        "Report the progress of a long ingestion, and which documents failed and why.",
        text=render_progress,
    ),
)
def handler(params: GetIngestion, caller: Caller) -> IngestionProgress:
    """Return the progress of a job."""
    job = jobs(caller).require(params.job_id)
    tally = job.tally
    status = job.status_at(datetime.now(UTC))
    return IngestionProgress(
        job.id,
        status,
        job.collection,
        _STALLED if status == "stalled" else job.message or summarize_tally(tally),
        max(job.total, tally.documents),
        tally.documents,
        **tally.outcomes(),
        created_at=job.created_at,
        updated_at=job.updated_at,
    )
