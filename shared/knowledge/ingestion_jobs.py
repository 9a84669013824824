"""Ingestion jobs that outlast a request: their input and their progress.

The input is stored first, then a work item that the stream delivers to a worker. If a worker is killed, the stream
delivers the item again, and the documents ingested before are unchanged then.
"""

import base64
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

from shared.aws.blob_store import BlobStore, compress
from shared.aws.dynamodb import Keys, Table, Write, from_item
from shared.knowledge import keys
from shared.knowledge.errors import no_job
from shared.knowledge.models import (
    Collection,
    DocumentFailure,
    FileNote,
    IngestionTally,
    JobStatus,
    NewKnowledgeDocument,
    UploadedFile,
)
from shared.platform.clock import lasts, now

_KEPT_SECONDS: Final = 7 * 24 * 3600
STALLED_SECONDS: Final = 1_200
"""Longer than a worker's whole run, and the time in which its successor begins."""
_FAILURES_BYTES: Final = 200 * 1024
_NOTES_BYTES: Final = 100 * 1024
_PATHS_PER_ITEM: Final = 200
"""An item holds 400 KB: this many of the longest paths take less than half, and failures take the other half."""


@dataclass(frozen=True, slots=True)
class IngestionJob:
    """An ingestion and its progress."""

    id: str
    status: JobStatus
    collection: str
    collection_id: str
    path: str
    recursive: bool
    total: int
    tally: IngestionTally
    message: str
    created_at: str
    updated_at: str

    def status_at(self, moment: datetime) -> JobStatus:
        """Return the status, which is `stalled` if an unfinished job has not moved for STALLED_SECONDS."""
        unfinished = self.status in ("queued", "running")
        stalls_at = datetime.fromisoformat(self.updated_at).timestamp() + STALLED_SECONDS
        moves = lasts(stalls_at, moment.timestamp(), STALLED_SECONDS)
        return "stalled" if unfinished and not moves else self.status


class IngestionJobs:
    """The ingestion jobs of one tenant."""

    def __init__(self, table: Table, tenant_id: str) -> None:
        self._table = table
        self._tenant_id = tenant_id

    def start(
        self,
        collection: Collection,
        documents: Sequence[NewKnowledgeDocument | UploadedFile],
        removed_paths: Sequence[str],
    ) -> str:
        """Start a job that ingests `documents` and removes those under `removed_paths`. Return its id."""
        job_id = secrets.token_hex(12)
        self.store_input(job_id, collection, documents, removed_paths)
        self.enqueue(job_id)
        return job_id

    def store_input(
        self,
        job_id: str,
        collection: Collection,
        documents: Sequence[NewKnowledgeDocument | UploadedFile],
        removed_paths: Sequence[str],
    ) -> None:
        """Store the input of the job `job_id`, which is enqueued later."""
        texts = self._texts(collection.id)
        partition = keys.partition(self._tenant_id, "job", job_id)
        for number, new in enumerate(documents):
            text_id = secrets.token_hex(8)
            document = asdict(new) | {"text": text_id}
            text = _ascii(document.pop("content")) if isinstance(new, UploadedFile) else new.text
            texts.write(compress(text), job_id, text_id)
            self._table.write(
                Write("Put", {"pk": partition, "sk": keys.job_input(keys.PENDING, number)} | document | _expiry())
            )
        for start in range(0, len(removed_paths), _PATHS_PER_ITEM):
            chunk = {
                "pk": partition,
                "sk": keys.job_input(keys.REMOVE, start),
                "paths": list(removed_paths[start : start + _PATHS_PER_ITEM]),
            }
            self._table.write(Write("Put", chunk | _expiry()))
        self._create(job_id, collection, total=len(documents))

    def start_reading(self, collection: Collection, path: str, *, recursive: bool) -> str:
        """Start a job that reads and ingests the files below `path` on this machine. Return its id."""
        job_id = secrets.token_hex(12)
        self._create(job_id, collection, total=0, path=path, recursive=recursive)
        self.enqueue(job_id)
        return job_id

    def require(self, job_id: str) -> IngestionJob:
        """Return the job of this id. Raise an error if it does not exist."""
        item = self._table.get(keys.partition(self._tenant_id, "job", job_id), keys.JOB)
        if item is None or item["expires_at"] <= time.time():
            raise no_job(job_id)
        failed = [DocumentFailure(**each) for each in item["tally"]["failed"]]
        notes = [FileNote(**each) for each in item["tally"].get("notes", ())]
        tally = IngestionTally(**item["tally"] | {"failed": failed, "notes": notes})
        return from_item(IngestionJob, item | {"id": job_id, "tally": tally})

    def removed_paths(self, job_id: str) -> list[str]:
        """Return the paths that the job removes."""
        pages = self._table.query(keys.partition(self._tenant_id, "job", job_id), Keys.beginning(keys.REMOVE))
        return [path for page in pages for item in page for path in item["paths"]]

    def documents(self, job: IngestionJob) -> Iterator[NewKnowledgeDocument | UploadedFile]:
        """Yield the documents and files that the job has yet to ingest, in order."""
        texts = self._texts(job.collection_id)
        remaining = Keys.between(
            keys.job_input(keys.PENDING, job.tally.documents), keys.job_input(keys.PENDING, job.total)
        )
        for page in self._table.query(keys.partition(self._tenant_id, "job", job.id), remaining):
            for item in page:
                text = texts.read(job.id, item["text"])
                if text is None:
                    continue
                if "origin" in item:
                    yield from_item(NewKnowledgeDocument, item | {"text": text})
                else:
                    yield from_item(UploadedFile, item | {"content": base64.b64decode(text)})

    def report(self, job_id: str, status: JobStatus, tally: IngestionTally, *, total: int, message: str = "") -> None:
        """Store the progress of a job."""
        listed_failures = _within_item(tally.failed, _FAILURES_BYTES)
        counts = asdict(tally) | {
            "failed": listed_failures,
            "unlisted": tally.failures - len(listed_failures),
            "notes": _within_item(tally.notes, _NOTES_BYTES),
        }
        self._table.write(
            Write(
                "Update",
                {"pk": keys.partition(self._tenant_id, "job", job_id), "sk": keys.JOB},
                expression="SET #status = :status, tally = :tally, #total = :total, message = :text, updated_at = :now",
                condition="attribute_exists(pk)",
                values={":status": status, ":tally": counts, ":total": total, ":text": message, ":now": now()},
                names={"#status": "status", "#total": "total"},
            )
        )

    def enqueue(self, job_id: str) -> None:
        """Enqueue a work item that makes a worker start or resume the job."""
        work_item = {
            "pk": keys.partition(self._tenant_id, "work"),
            "sk": f"{keys.INGEST}{job_id}#{secrets.token_hex(4)}",
        }
        self._table.write(Write("Put", work_item | _expiry()))

    def finish(self, job: IngestionJob) -> None:
        """Delete the input of a job."""
        texts = self._texts(job.collection_id)
        partition = keys.partition(self._tenant_id, "job", job.id)
        for page in self._table.query(partition, Keys.beginning(keys.PENDING)):
            for item in page:
                texts.delete(job.id, item["text"])
            self._table.delete_all((item["pk"], item["sk"]) for item in page)
        self._table.delete_range(partition, Keys.beginning(keys.REMOVE))

    def _texts(self, collection_id: str) -> BlobStore:
        return BlobStore(self._table, partial(keys.text, self._tenant_id, collection_id), keys.PART_DIGITS)

    def _create(self, job_id: str, collection: Collection, **fields: Any) -> None:
        at = now()
        item = {
            "pk": keys.partition(self._tenant_id, "job", job_id),
            "sk": keys.JOB,
            "status": "queued",
            "collection": collection.name,
            "collection_id": collection.id,
            "path": "",
            "recursive": False,
            "tally": asdict(IngestionTally()),
            "message": "",
            "created_at": at,
            "updated_at": at,
        }
        self._table.write(Write("Put", item | fields | _expiry()))


def _ascii(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _expiry() -> dict[str, int]:
    return {"expires_at": int(time.time()) + _KEPT_SECONDS}


def _within_item(listed: Sequence[DocumentFailure | FileNote], most_bytes: int) -> list[dict[str, str]]:
    """Return as many of the first failures or notes as fit into an item."""
    fitting, remaining = [], most_bytes
    for each in map(asdict, listed):
        remaining -= sum(len(text.encode()) for text in each.values()) + 20
        if remaining < 0:
            break
        fitting.append(each)
    return fitting
