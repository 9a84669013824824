"""Ingestion of this machine's files by a backend: changed files are sent in batches, unchanged ones are not sent."""

from __future__ import annotations

import time
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from infra.clients.agent.backend import BackendError, read_pages
from shared.knowledge.folder_sync import InvalidFile, sync_folder
from shared.knowledge.models import DocumentFailure, IngestionTally, StoredFile
from shared.knowledge.responses import require_ingested, summarize_tally
from shared.rpc.errors import KhoError, OutOfTime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Future

    from infra.clients.agent.backend import Backend
    from infra.clients.agent.files.reader import FileReader
    from shared.knowledge.models import NewKnowledgeDocument, SkippedFile

    Progress = Callable[[int, int, str], None]

_BATCH_BYTES: Final = 8 * 1024
"""Small, so that progress and cancellation take effect about every second."""
_CONCURRENT_BATCHES: Final = 2
_ATTEMPTS: Final = 3
_PAGE: Final = 1000
_POLL_SECONDS: Final = 0.25
_COUNTS: Final = ("added", "updated", "unchanged", "removed", "chunks", "pending")


class FolderUpload:
    """The synchronisation of a backend's collection with one path. It can be cancelled between files and repeated."""

    def __init__(self, backend: Backend, collection: str, progress: Progress) -> None:
        self._backend = backend
        self._collection = collection
        self._progress = progress

    def run(self, reader: FileReader, path: str, *, recursive: bool) -> dict[str, Any]:
        """Add what lies under `path` and remove what is missing. Return the result as ingest_documents does."""
        try:
            listing = reader.find(path, recursive=recursive)
        except KhoError as error:
            raise BackendError.from_kho_error(error) from None
        pool = ThreadPoolExecutor(_CONCURRENT_BATCHES)
        waits = True
        try:
            target = _RemoteCollection(self._backend, self._collection, listing.tree, pool)
            missing = sync_folder(target, target, listing, self._progress)
        except KeyboardInterrupt:  # the process ends: it waits for no batch
            waits = False
            raise
        finally:
            pool.shutdown(wait=waits, cancel_futures=not waits)
        if listing.absent and not missing:
            raise BackendError.from_kho_error(listing.absent)
        if not listing.is_folder:
            try:
                require_ingested(target.tally, path)
            except KhoError as error:
                raise BackendError.from_kho_error(error) from None
        return target.result()


class _RemoteCollection:
    """A collection of a backend, as `sync_folder` uses it."""

    def __init__(self, backend: Backend, collection: str, tree: str, pool: ThreadPoolExecutor) -> None:
        self.tally = IngestionTally()
        self._backend = backend
        self._collection = collection
        self._tree = tree
        self._pool = pool
        self._stored = self._list_documents()
        self._invalid: list[str] = []
        self._batch: list[NewKnowledgeDocument] = []
        self._batch_bytes = 0
        self._in_progress: deque[Future[dict[str, Any]]] = deque()

    def find(self, path: str) -> StoredFile | None:
        """Return the document that was stored when the synchronisation began."""
        return self._stored.get(path)

    def stored(self) -> Iterable[StoredFile]:
        """Return every document that was stored when the synchronisation began."""
        return self._stored.values()

    def skip(self, stored: StoredFile) -> None:
        """Count an unchanged document."""
        self.tally.unchanged += 1
        self.tally.chunks += stored.chunks

    def leave_out(self, file: SkippedFile) -> None:
        """Count a file of a kind that holds no text. A document of its former content goes."""
        self.tally.skip_kind(file.kind)
        if file.path in self._stored:
            self._invalid.append(file.path)

    def fail(self, failure: DocumentFailure) -> None:
        """Record a file that cannot be read. A file that is now invalid loses its document."""
        self.tally.failed.append(failure)
        if isinstance(failure, InvalidFile) and failure.path in self._stored:
            self._invalid.append(failure.path)

    def add(self, new: NewKnowledgeDocument) -> None:
        """Put a document into the batch, which is sent when it is full."""
        if self._batch and self._batch_bytes + len(new.text) > _BATCH_BYTES:
            self._send()
        self._batch.append(new)
        self.tally.tell_encoding(new)
        self._batch_bytes += len(new.text.encode("utf-8"))

    def remove(self, paths: Sequence[str]) -> None:
        """Finish all batches, then remove documents whose files are missing or invalid."""
        if self._batch:
            self._send()
        for each in self._in_progress:
            self._count(each.result())
        removed = [*paths, *self._invalid]
        for start in range(0, len(removed), _PAGE):
            self._count(self._call({"remove": removed[start : start + _PAGE]}))

    def result(self) -> dict[str, Any]:
        """Return the tally as the result of ingest_documents."""
        outcomes = {name: value for name, value in asdict(self.tally).items() if name in self.tally.outcomes()}
        return {
            "status": "success",
            "collection": self._collection,
            "message": summarize_tally(self.tally),
            **outcomes,
        }

    def _list_documents(self) -> dict[str, StoredFile]:
        stored: dict[str, StoredFile] = {}
        query = {"collection_name": self._collection, "limit": _PAGE}
        for page in read_pages(partial(self._backend.call, "list_documents"), query):
            for row in page["documents"]:
                document = StoredFile(row["path"], row["hash"], row["tree"], row["chunks"], row["indexed"])
                stored[document.path] = document
        return stored

    def _send(self) -> None:
        """Send the batch in the background: files are read while the backend embeds earlier ones."""
        batch, self._batch, self._batch_bytes = self._batch, [], 0
        if len(self._in_progress) == _CONCURRENT_BATCHES:
            self._count(self._in_progress.popleft().result())
        self._in_progress.append(self._pool.submit(self._ingest, batch))

    def _ingest(self, batch: Sequence[NewKnowledgeDocument]) -> dict[str, Any]:
        """Send a batch, and send it again if time runs out. What an earlier attempt has stored is counted as new."""
        documents = [{"path": each.path, "content": each.text, "hash": each.hash} for each in batch]
        for attempt in range(_ATTEMPTS):
            try:
                result = self._call({"documents": documents, "tree": self._tree})
            except BackendError as error:
                if error.data.get("code") != OutOfTime.code or attempt == _ATTEMPTS - 1:
                    raise
            else:
                return result | self._outcomes(batch, result) if attempt else result
        raise AssertionError("the last attempt returns or raises")

    def _outcomes(self, batch: Sequence[NewKnowledgeDocument], result: dict[str, Any]) -> dict[str, int]:
        """Count a batch by what was stored when the synchronisation began."""
        failed = {each["path"] for each in result.get("failed") or ()}
        counts: Counter[str] = Counter(added=0, updated=0, unchanged=0)
        for each in batch:
            if each.path in failed:
                continue
            stored = self._stored.get(each.path)
            is_unchanged = stored and stored.hash == each.hash and stored.indexed
            counts["unchanged" if is_unchanged else "updated" if stored else "added"] += 1
        return dict(counts)

    def _call(self, params: dict[str, Any]) -> dict[str, Any]:
        call = {"collection": self._collection} | params
        return await_ingestion(self._backend, self._backend.call("ingest_documents", call))

    def _count(self, result: dict[str, Any]) -> None:
        for name in _COUNTS:
            setattr(self.tally, name, getattr(self.tally, name) + result[name])
        self.tally.failed += [DocumentFailure(**each) for each in result.get("failed") or []]


def await_ingestion(backend: Backend, response: dict[str, Any]) -> dict[str, Any]:
    """Wait until the ingestion is done, if a worker runs it. Return its final result."""
    if "job_id" not in response:
        return response
    while True:
        job: dict[str, Any] = backend.call("get_ingestion", {"job_id": response["job_id"]})
        if job["status"] == "failed":
            raise BackendError(-32003, job["message"], {"code": "DOCUMENT_JOB_FAILED", "details": job, "guidance": ""})
        if job["status"] == "done":
            fields = ("collection", "message", *_COUNTS, "failed", "skipped", "notes")
            return {"status": "success"} | {name: job[name] for name in fields}
        time.sleep(_POLL_SECONDS)
