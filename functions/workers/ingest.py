"""Run ingestion jobs that outlast a request.

A work item starts each job. A worker runs it for a short turn, then enqueues it again, so that no tenant waits long for
others in its part of the stream. If a worker crashes, another one resumes the job.
"""

import math
from dataclasses import replace
from typing import Any, Final

from api.deployment import EMBEDDING_INDEX, SPLITTING, TableStream, change, lambda_function, table
from api.stream_records import stream_worker
from shared.config import config
from shared.dynamodb import Table
from shared.knowledge import keys
from shared.knowledge.collections import CollectionStore
from shared.knowledge.documents import CollectionDocuments
from shared.knowledge.embedding.models import recorded_space
from shared.knowledge.errors import file_reading_disabled
from shared.knowledge.folder_sync import file_reader, sync_folder
from shared.knowledge.index import knowledge_index
from shared.knowledge.ingestion import DocumentIngestion, WorkerTimeExpired
from shared.knowledge.ingestion_jobs import IngestionJob, IngestionJobs
from shared.rpc.errors import KhoError, NotFound, OutOfTime, Unavailable
from shared.telemetry import correlation_id_from, observe

_TURN_SECONDS: Final = 60.0
_READING_SECONDS: Final = 600.0
"""The turn of a job that reads files. It compares every file again in its next turn, and never shares a queue."""


@lambda_function(
    table("Knowledge", "BatchWriteItem", "GetItem", "PutItem", "Query", "UpdateItem"),
    EMBEDDING_INDEX,
    SPLITTING,
    timeout=900,
    stream=TableStream(
        table="Knowledge",
        filters=(change("INSERT", sk={"prefix": keys.INGEST}),),
        batch_size=1,
        max_age=86_400,  # as long as the stream keeps records
        parallelization=10,
    ),
)
@stream_worker
def handler(record: Any) -> None:
    """Run the job of a stream record. The stream retries what a store refuses temporarily."""
    tenant_id = record.dynamodb.keys["pk"].removesuffix(keys.partition("", "work"))
    job_id = record.dynamodb.keys["sk"].removeprefix(keys.INGEST).partition("#")[0]
    table = Table(config().knowledge_table)
    jobs = IngestionJobs(table, tenant_id)
    try:
        job = jobs.require(job_id)
    except NotFound:
        return  # expired
    if job.status in ("done", "failed"):
        return
    try:
        with observe("workers/ingest", correlation_id_from(record.event_id), budget=math.inf):
            _run(job, jobs, table, tenant_id)
    except (Unavailable, OutOfTime):
        raise
    except KhoError as error:
        # This includes our own defects: a retry would fail again and block all jobs behind this one.
        jobs.report(job_id, "failed", job.tally, total=job.total, message=error.message)
        jobs.finish(job)


def _run(job: IngestionJob, jobs: IngestionJobs, table: Table, tenant_id: str) -> None:
    """Run or resume a job. If the time is over, enqueue it for another worker."""
    collections = CollectionStore(table, tenant_id)
    collection = replace(collections.require(job.collection, recorded_space()), id=job.collection_id)
    collections.require_unchanged(collection)
    files = file_reader()
    if job.path and files is None:
        raise file_reading_disabled()
    listing = files.find(job.path, recursive=job.recursive) if job.path and files else None
    documents = CollectionDocuments(table, tenant_id, collection, knowledge_index())
    total = listing.total if listing else job.total
    ingestion = DocumentIngestion(
        documents,
        lambda tally: jobs.report(job.id, "running", tally, total=total),
        tally=None if listing else job.tally,
        seconds=_READING_SECONDS if listing else _TURN_SECONDS,
    )
    tally = ingestion.tally
    try:
        if listing:
            sync_folder(ingestion, listing)
        else:
            ingestion.add_all(jobs.documents(job))
            ingestion.remove(jobs.removed_paths(job.id))
    except WorkerTimeExpired:
        jobs.report(job.id, "running", tally, total=total)
        jobs.enqueue(job.id)
        return
    collections.require_unchanged(collection)
    jobs.report(job.id, "done", tally, total=max(job.total, tally.documents))
    jobs.finish(job)
