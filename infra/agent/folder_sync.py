"""Bringing this machine's files in: read here, sent in batches, unchanged ones not at all."""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from infra.agent.backend import BackendError
from shared.knowledge.file_source import InvalidFile
from shared.knowledge.models import DocumentFailure, IngestionTally
from shared.rpc.errors import KhoError, OutOfTime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from infra.agent.backend import Backend
    from infra.agent.files.reader import FileReader, FileSelection
    from shared.knowledge.models import NewKnowledgeDocument

_BATCH_BYTES: Final = 8 * 1024
"""Small, so that progress is told and a cancellation heard every second or so."""
_IN_PROGRESS: Final = 2
_ATTEMPTS: Final = 3
_PAGE: Final = 1000
_POLL_SECONDS: Final = 0.25
_COUNTS: Final = ("added", "updated", "unchanged", "removed", "chunks", "pending")


@dataclass(slots=True)
class _Batch:
    documents: list[NewKnowledgeDocument] = field(default_factory=list)
    size: int = 0

    def add(self, new: NewKnowledgeDocument) -> None:
        self.documents.append(new)
        self.size += len(new.text.encode("utf-8"))


class FolderSync:
    """One path on its way into one collection; it can be stopped between any two batches, and taken up again."""

    def __init__(self, backend: Backend, collection: str, told: Callable[[int, int, str], None]) -> None:
        self._backend = backend
        self._collection = collection
        self._told = told
        self._tally = IngestionTally()

    def run(self, reader: FileReader, path: str, *, recursive: bool) -> dict[str, Any]:
        """Bring in what lies under `path`, and take out what is gone; the result as ingest_documents gives it."""
        try:
            found = reader.find(path, recursive=recursive)
        except KhoError as refusal:
            raise BackendError.of(refusal) from None
        there = self._there()
        seen: set[str] = set()
        self._send_all(self._batches(found, there, seen), found.tree)
        gone = [
            each
            for each, kept in there.items()
            if kept["tree"] == found.tree and found.covers(each) and each not in seen
        ]
        if found.absent and not gone:
            raise BackendError.of(found.absent)
        gone += [each.path for each in self._tally.failed if isinstance(each, InvalidFile) and each.path in there]
        for start in range(0, len(gone), _PAGE):
            self._count(self._ingest({"remove": gone[start : start + _PAGE]}))
        if not found.is_folder and self._tally.failed:
            raise _unreadable(self._tally.failed[0])
        return self._result()

    def _there(self) -> dict[str, dict[str, Any]]:
        """What the collection holds already, by path."""
        there: dict[str, dict[str, Any]] = {}
        asked: dict[str, Any] = {"action": "info", "collection_name": self._collection, "limit": _PAGE}
        while True:
            page = self._backend.call("manage_collections", asked)
            there |= {each["path"]: each for each in page["documents"]}
            if "next_cursor" not in page:
                return there
            asked["cursor"] = page["next_cursor"]

    def _batches(self, found: FileSelection, there: dict[str, dict[str, Any]], seen: set[str]) -> Iterator[_Batch]:
        batch = _Batch()
        for number, file in enumerate(found.files(), start=1):
            self._told(number, found.total, file.path)
            seen.add(file.path)
            if isinstance(file, DocumentFailure):
                self._tally.failed.append(file)
                continue
            kept = there.get(file.path)
            if kept and kept["hash"] == file.hash and kept["indexed"] and kept["tree"] == found.tree:
                self._tally.unchanged += 1
                self._tally.chunks += kept["chunks"]
                continue
            new = file.document()
            if isinstance(new, DocumentFailure):
                self._tally.failed.append(new)
                continue
            if batch.documents and batch.size + len(new.text) > _BATCH_BYTES:
                yield batch
                batch = _Batch()
            batch.add(new)
        if batch.documents:
            yield batch

    def _send_all(self, batches: Iterator[_Batch], tree: str) -> None:
        """Send one batch while the other is still brought in, so that nobody waits for the other side."""
        under_way: deque[Future[dict[str, Any]]] = deque()
        with ThreadPoolExecutor(_IN_PROGRESS) as threads:
            for batch in batches:
                if len(under_way) == _IN_PROGRESS:
                    self._count(under_way.popleft().result())
                sent = [{"path": each.path, "content": each.text, "hash": each.hash} for each in batch.documents]
                under_way.append(threads.submit(self._ingest, {"documents": sent, "tree": tree}))
            for each in under_way:
                self._count(each.result())

    def _ingest(self, what: dict[str, Any]) -> dict[str, Any]:
        asked = {"collection": self._collection} | what
        for _ in range(_ATTEMPTS - 1):
            try:
                return await_ingestion(self._backend, self._backend.call("ingest_documents", asked))
            except BackendError as refusal:
                # What was in by then is found unchanged.
                if refusal.data.get("code") != OutOfTime.code:
                    raise
        return await_ingestion(self._backend, self._backend.call("ingest_documents", asked))

    def _count(self, done: dict[str, Any]) -> None:
        for name in _COUNTS:
            setattr(self._tally, name, getattr(self._tally, name) + done[name])
        self._tally.failed += [DocumentFailure(**each) for each in done.get("failed") or []]

    def _result(self) -> dict[str, Any]:
        from shared.knowledge.ingest_response import summarize_tally

        counts = {name: getattr(self._tally, name) for name in _COUNTS}
        failed = [{"path": each.path, "reason": each.reason} for each in self._tally.failed]
        message = summarize_tally(self._tally)
        return {"status": "success", "collection": self._collection, "message": message, **counts, "failed": failed}


def await_ingestion(backend: Backend, answer: dict[str, Any]) -> dict[str, Any]:
    """The end of an ingestion, waited for where a worker carries it out."""
    if "job_id" not in answer:
        return answer
    while True:
        job: dict[str, Any] = backend.call("get_ingestion", {"job_id": answer["job_id"]})
        if job["status"] == "failed":
            raise BackendError(-32003, job["message"], {"code": "DOCUMENT_JOB_FAILED", "details": job, "guidance": ""})
        if job["status"] == "done":
            counts = {name: job[name] for name in _COUNTS}
            return {
                "status": "success",
                "collection": job["collection"],
                "message": job["message"],
                **counts,
                "failed": job["failed"],
            }
        time.sleep(_POLL_SECONDS)


def _unreadable(failure: DocumentFailure) -> BackendError:
    from shared.knowledge.errors import unreadable

    return BackendError.of(unreadable(failure.path, failure.reason))
