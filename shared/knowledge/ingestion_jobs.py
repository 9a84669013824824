"""Ingestions that are longer than a request: what they are to bring in, and how far they are.

What is to be done is stored first, then an item of work, which the stream brings to a worker. A worker that is killed
is started again by the stream: what it had brought in is found unchanged.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from shared.clock import now
from shared.dynamodb import Keys, Write
from shared.knowledge import keys
from shared.knowledge.errors import no_job
from shared.knowledge.models import DocumentFailure, IngestionTally, NewKnowledgeDocument
from shared.knowledge.text_store import TextStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shared.dynamodb import Item, Table
    from shared.knowledge.models import Collection, JobStatus

_KEPT_SECONDS: Final = 7 * 24 * 3600
_FAILURES_BYTES: Final = 200 * 1024
_PATHS_AT_ONCE: Final = 200
"""An item holds 400 KB: so many of the longest paths are less than half of it, and failures have another half."""


@dataclass(frozen=True, slots=True)
class IngestionJob:
    """An ingestion and how far it is."""

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


class IngestionJobs:
    """The ingestions of one tenant."""

    def __init__(self, table: Table, tenant_id: str) -> None:
        self._table = table
        self._tenant_id = tenant_id

    def start(self, collection: Collection, documents: Sequence[NewKnowledgeDocument], removed: Sequence[str]) -> str:
        """Have `documents` brought in, and those under `removed` taken out, by a worker; the job's id."""
        job_id = secrets.token_hex(12)
        self.begin(job_id, collection, documents, removed)
        self.go_on(job_id)
        return job_id

    def begin(
        self, job_id: str, collection: Collection, documents: Sequence[NewKnowledgeDocument], removed: Sequence[str]
    ) -> None:
        """Store what the job `job_id` is to do, for a worker that is told of it later."""
        texts = TextStore(self._table, self._tenant_id, collection.id)
        partition = keys.job(self._tenant_id, job_id)
        for number, new in enumerate(documents):
            todo = asdict(new) | {"text": texts.keep(job_id, new.text)}
            self._table.write(Write("Put", {"pk": partition, "sk": keys.todo(number)} | todo | _expiry()))
        for start in range(0, len(removed), _PATHS_AT_ONCE):
            some = {"pk": partition, "sk": keys.remove(start), "paths": list(removed[start : start + _PATHS_AT_ONCE])}
            self._table.write(Write("Put", some | _expiry()))
        self._begin(job_id, collection, total=len(documents))

    def start_reading(self, collection: Collection, path: str, *, recursive: bool) -> str:
        """Have the files under `path` read and brought in by a worker on this machine; the job's id."""
        job_id = secrets.token_hex(12)
        self._begin(job_id, collection, total=0, path=path, recursive=recursive)
        self.go_on(job_id)
        return job_id

    def require(self, job_id: str) -> IngestionJob:
        """The ingestion of this id, which must exist."""
        item = self._table.get(keys.job(self._tenant_id, job_id), keys.JOB)
        if item is None or int(item["expires_at"]) <= time.time():
            raise no_job(job_id)
        return _job(job_id, item)

    def removed(self, job_id: str) -> list[str]:
        """The paths that the ingestion is to take out."""
        pages = self._table.query(keys.job(self._tenant_id, job_id), Keys.beginning(keys.REMOVE))
        return [path for page in pages for item in page for path in item["paths"]]

    def todo(self, job: IngestionJob) -> Iterator[NewKnowledgeDocument]:
        """The documents that are still to be brought in, in their order."""
        texts = TextStore(self._table, self._tenant_id, job.collection_id)
        for page in self._table.query(keys.job(self._tenant_id, job.id), Keys.beginning(keys.TODO)):
            for item in page:
                text = texts.read(job.id, item["text"])
                if text is not None:
                    yield NewKnowledgeDocument(
                        path=item["path"],
                        text=text,
                        hash=item["hash"],
                        title=item["title"],
                        origin=item["origin"],
                        tree=item["tree"],
                    )

    def report(self, job_id: str, status: JobStatus, tally: IngestionTally, *, total: int, message: str = "") -> None:
        """Say how far the ingestion is."""
        listed = _fitting(tally.failed)
        counts = asdict(tally) | {"failed": listed, "unlisted": tally.failures - len(listed)}
        self._table.write(
            Write(
                "Update",
                {"pk": keys.job(self._tenant_id, job_id), "sk": keys.JOB},
                expression="SET #status = :status, tally = :tally, #total = :total, message = :said, updated_at = :now",
                condition="attribute_exists(pk)",
                values={":status": status, ":tally": counts, ":total": total, ":said": message, ":now": now()},
                names={"#status": "status", "#total": "total"},
            )
        )

    def go_on(self, job_id: str) -> None:
        """Have a worker take the ingestion up, or take it up again."""
        run = {"pk": keys.work(self._tenant_id), "sk": f"{keys.INGEST}{job_id}#{secrets.token_hex(4)}"}
        self._table.write(Write("Put", run | {"expires_at": int(time.time()) + _KEPT_SECONDS}))

    def finish(self, job: IngestionJob) -> None:
        """Forget what was to be done."""
        texts = TextStore(self._table, self._tenant_id, job.collection_id)
        partition = keys.job(self._tenant_id, job.id)
        for page in self._table.query(partition, Keys.beginning(keys.TODO)):
            for item in page:
                texts.delete(job.id, item["text"])
            self._table.delete_all((item["pk"], item["sk"]) for item in page)
        for page in self._table.query(partition, Keys.beginning(keys.REMOVE)):
            self._table.delete_all((item["pk"], item["sk"]) for item in page)

    def _begin(self, job_id: str, collection: Collection, **more: Any) -> None:
        at = now()
        item = {
            "pk": keys.job(self._tenant_id, job_id),
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
        self._table.write(Write("Put", item | more | _expiry()))


def _expiry() -> dict[str, int]:
    return {"expires_at": int(time.time()) + _KEPT_SECONDS}


def _fitting(failures: Sequence[DocumentFailure]) -> list[dict[str, str]]:
    """As many of them, from the first on, as an item has room for."""
    listed, left = [], _FAILURES_BYTES
    for each in failures:
        left -= len(each.path.encode()) + len(each.reason.encode()) + 20
        if left < 0:
            break
        listed.append(asdict(each))
    return listed


def _job(job_id: str, item: Item) -> IngestionJob:
    counts = {name: int(count) for name, count in item["tally"].items() if name != "failed"}
    return IngestionJob(
        id=job_id,
        status=item["status"],
        collection=item["collection"],
        collection_id=item["collection_id"],
        path=item["path"],
        recursive=item["recursive"],
        total=int(item["total"]),
        tally=IngestionTally(**counts, failed=[DocumentFailure(**each) for each in item["tally"]["failed"]]),
        message=item["message"],
        created_at=item["created_at"],
        updated_at=item["updated_at"],
    )
