"""Run ingestion jobs that outlast a request.

A work item starts each job. A worker runs it for a short turn, then enqueues it again, so that no tenant waits long for
others in its part of the stream. If a worker crashes, another one resumes the job.
"""

from contextlib import suppress
from dataclasses import replace
from typing import Final

from api.deployment import (
    BULK_EMBEDDING_INDEX,
    PDF_EXTRACTION,
    SPLITTING,
    STREAM_SECONDS,
    TableStream,
    change,
    lambda_function,
    table,
)
from api.stream_records import StreamRecord, stream_worker
from shared.aws.dynamodb import Table
from shared.knowledge import keys
from shared.knowledge.collections import CollectionStore
from shared.knowledge.documents import CollectionDocuments
from shared.knowledge.errors import file_reading_disabled
from shared.knowledge.folder_sync import sync_folder
from shared.knowledge.ingestion import DocumentIngestion, WorkerTimeExpired
from shared.knowledge.ingestion_jobs import IngestionJob, IngestionJobs
from shared.knowledge.models import (
    DocumentFailure,
    IngestionTally,
    NewKnowledgeDocument,
    SkippedFile,
    StoredFile,
    UploadedFile,
)
from shared.knowledge.recorded_space import recorded_space
from shared.platform.config import config
from shared.platform.runtime import runtime
from shared.rpc.errors import Internal, KhoError, NotFound, OutOfTime, Unavailable
from shared.search.index import knowledge_index

_TURN_SECONDS: Final = 60.0
_READING_SECONDS: Final = 600.0
"""The turn of a job that reads files. It compares every file again in its next turn, and never shares a queue."""


def _progress(record: StreamRecord) -> str:
    """Return how far a record's job is: a job that goes on, although its server is killed again and again, is sound."""
    job = _find(record)
    return str(job.tally.documents) if job else ""


def _abandon(record: StreamRecord) -> None:
    """Report a record's job as failed."""
    if job := _find(record):
        _fail(job, _jobs(record), "The ingestion was ended by an internal error three times.")


@lambda_function(
    table("Knowledge", "BatchWriteItem", "GetItem", "PutItem", "Query", "UpdateItem"),
    BULK_EMBEDDING_INDEX,
    SPLITTING,
    PDF_EXTRACTION,
    timeout=900,
    stream=TableStream(
        table="Knowledge",
        filters=(change("INSERT", sk={"prefix": keys.INGEST}),),
        batch_size=1,
        max_age=STREAM_SECONDS,
        parallelization=10,
    ),
)
@stream_worker("workers/ingest", progress=_progress, abandon=_abandon)
def handler(record: StreamRecord) -> None:
    """Run the job of a stream record. The stream retries what a store refuses temporarily."""
    job, jobs = _find(record), _jobs(record)
    if job is None or job.status in ("done", "failed"):
        return
    try:
        _run(job, jobs, Table(config().knowledge_table), _tenant_id(record))
    except (Unavailable, OutOfTime, Internal):
        raise
    except KhoError as error:  # such as a collection that was deleted: a retry fails again
        _fail(job, jobs, error.message)


def _fail(job: IngestionJob, jobs: IngestionJobs, message: str) -> None:
    jobs.report(job.id, "failed", job.tally, total=job.total, message=message)
    jobs.finish(job)


def _find(record: StreamRecord) -> IngestionJob | None:
    with suppress(NotFound):  # expired
        return _jobs(record).require(record.sk.removeprefix(keys.INGEST).partition("#")[0])
    return None


def _jobs(record: StreamRecord) -> IngestionJobs:
    return IngestionJobs(Table(config().knowledge_table), _tenant_id(record))


def _tenant_id(record: StreamRecord) -> str:
    return record.pk.removesuffix(keys.partition("", "work"))


def _read(
    each: NewKnowledgeDocument | UploadedFile, documents: CollectionDocuments
) -> NewKnowledgeDocument | StoredFile | DocumentFailure | SkippedFile:
    if isinstance(each, NewKnowledgeDocument):
        return each
    from shared.knowledge.uploads import read  # few jobs have files

    return read(each, documents)


def _run(job: IngestionJob, jobs: IngestionJobs, table: Table, tenant_id: str) -> None:
    """Run or resume a job. If the time is over, enqueue it for another worker."""
    collections = CollectionStore(table, tenant_id)
    collection = replace(collections.require(job.collection, recorded_space()), id=job.collection_id)
    collections.require_unchanged(collection)
    files = runtime.file_source
    if job.path and files is None:
        raise file_reading_disabled()
    listing = files.find(job.path, recursive=job.recursive) if job.path and files else None
    documents = CollectionDocuments(table, tenant_id, collection, knowledge_index(), job=job.id)
    total = listing.total if listing else job.total
    ingestion = DocumentIngestion(
        documents,
        lambda tally: jobs.report(job.id, "running", tally, total=total),
        tally=IngestionTally(notes=job.tally.notes) if listing else job.tally,
        seconds=_READING_SECONDS if listing else _TURN_SECONDS,
        resumed=job.status == "running",
    )
    tally = ingestion.tally
    if job.status == "queued":
        jobs.report(job.id, "running", tally, total=total)  # from now on a worker resumes it
    try:
        if listing:
            sync_folder(documents, ingestion, listing)
        else:
            ingestion.add_all(_read(each, documents) for each in jobs.documents(job))
            ingestion.remove(jobs.removed_paths(job.id))
    except WorkerTimeExpired:
        jobs.report(job.id, "running", tally, total=total)
        jobs.enqueue(job.id)
        return
    collections.require_unchanged(collection)
    jobs.report(job.id, "done", tally, total=max(job.total, tally.documents))
    jobs.finish(job)
