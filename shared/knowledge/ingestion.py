"""Ingestion of documents into a collection: within the request if they are few, else by a worker.

Several documents are stored and embedded at once. A worker may be killed at any time. The next one resumes with the
last tally; documents that are already stored are unchanged.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import TYPE_CHECKING, Final

from shared.knowledge.folder_sync import InvalidFile
from shared.knowledge.models import DocumentFailure, IngestionTally, SkippedFile, StoredFile
from shared.platform.config import ConfigurationError, config
from shared.platform.telemetry import current_correlation_id, logger
from shared.rpc.errors import KhoError, OutOfTime, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Future

    from shared.knowledge.documents import CollectionDocuments, PutResult
    from shared.knowledge.models import NewKnowledgeDocument, Outcome

_MAX_INLINE_BYTES: Final = 24 * 1024
"""As much as is embedded within the five seconds that research-agent allows a simple call, on one slow core."""
_REPORT_INTERVAL_SECONDS: Final = 0.5


def is_long(documents: CollectionDocuments, new: Sequence[NewKnowledgeDocument]) -> bool:
    """Return whether the new and changed documents are too large to ingest within a request."""
    if _size(new) <= _MAX_INLINE_BYTES:
        return False
    hashes = documents.read_field("hash", (each.path for each in new))
    return _size([each for each in new if hashes.get(each.path) != each.hash]) > _MAX_INLINE_BYTES


def _size(documents: Sequence[NewKnowledgeDocument]) -> int:
    return sum(len(each.text.encode("utf-8")) for each in documents)


class WorkerTimeExpired(Exception):
    """A worker's time is over before its work is done. Another worker continues."""


class DocumentIngestion:
    """An ingestion into one collection, and the tally of its outcomes."""

    def __init__(
        self,
        documents: CollectionDocuments,
        report: Callable[[IngestionTally], None] | None = None,
        *,
        tally: IngestionTally | None = None,
        seconds: float = float("inf"),
        resumed: bool = False,
    ) -> None:
        self.tally = tally or IngestionTally()
        self._earlier = documents.changes_of_job() if resumed else {}
        """The changes of the job's former workers: a crash loses what they have counted since their last report."""
        if resumed:
            self.tally.removed = list(self._earlier.values()).count("removed")
        self._deadline = time.monotonic() + seconds
        self._documents = documents
        self._report = report
        self._reported_at = 0.0
        self._limit = config().embedding_calls
        self._threads = ThreadPoolExecutor(self._limit, thread_name_prefix="ingestion")
        self._running: dict[str, tuple[NewKnowledgeDocument, Future[PutResult | DocumentFailure]]] = {}

    def skip(self, stored: StoredFile) -> None:
        """Count a document that is as stored."""
        self._count(stored.path, "unchanged", stored.chunks)
        self._report_progress()

    def add(self, new: NewKnowledgeDocument) -> None:
        """Begin to add or replace one document, after the ones in progress if they are too many or of the same path.

        An error that concerns only this document is counted, not raised.
        """
        if new.path in self._running:
            self.finish()
        self._running[new.path] = new, self._threads.submit(copy_context().run, self._put, new)
        while len(self._running) >= self._limit:
            self._collect()

    def leave_out(self, file: SkippedFile) -> None:
        """Count a file of a kind that holds no text. A document of its former content goes."""
        self.finish()
        self.tally.skip_kind(file.kind)
        self.tally.removed += self._documents.remove(file.path)
        self._report_progress()

    def add_all(self, new: Iterable[NewKnowledgeDocument | StoredFile | DocumentFailure | SkippedFile]) -> None:
        """Add each new document, record each failure, and count each file without text and each stored document."""
        for each in new:
            if isinstance(each, DocumentFailure):
                self.fail(each)
            elif isinstance(each, SkippedFile):
                self.leave_out(each)
            elif isinstance(each, StoredFile):
                self.skip(each)
            else:
                self.add(each)
        self.finish()

    def finish(self) -> None:
        """Wait for the documents in progress, and count them."""
        while self._running:
            self._collect()

    def _put(self, new: NewKnowledgeDocument) -> PutResult | DocumentFailure:
        try:
            return self._documents.put(new)
        except (Unavailable, OutOfTime, ConfigurationError):
            raise  # the other documents would fail as well
        except KhoError as error:
            # The file has changed, so the document of its former content goes, although the new content is refused.
            failure = InvalidFile if new.origin == "file" else DocumentFailure
            return failure(new.path, error.message.removeprefix(new.path).strip())
        except Exception:
            logger.exception("crashed")
            return DocumentFailure(new.path, f"failed by an internal error: {current_correlation_id()}")

    def _collect(self) -> None:
        """Count the oldest document in progress. Before an error is raised, the others end."""
        try:
            self._count_oldest()
            self._report_progress()
        except WorkerTimeExpired:
            # The next worker begins with the document after those that are counted.
            while self._running:
                self._count_oldest()
            raise
        except BaseException:
            wait(future for _, future in self._running.values())
            raise

    def _count_oldest(self) -> None:
        path = next(iter(self._running))
        new, future = self._running.pop(path)
        result = future.result()
        if isinstance(result, DocumentFailure):
            self._count_failure(result)
            return
        self.tally.pending += result.pending
        if self._count(path, result.outcome, result.chunks) != "unchanged":
            self.tally.tell_encoding(new)

    def _count(self, path: str, outcome: Outcome, chunks: int) -> str:
        earlier = self._earlier.pop(path, "")
        counted = earlier if earlier in ("added", "updated") else outcome
        setattr(self.tally, counted, getattr(self.tally, counted) + 1)
        self.tally.chunks += chunks
        return counted

    def _count_failure(self, failure: DocumentFailure) -> None:
        self.tally.failed.append(failure)
        if isinstance(failure, InvalidFile):
            self.tally.removed += self._documents.remove(failure.path)

    def fail(self, failure: DocumentFailure) -> None:
        """Record a document that cannot be ingested. A file that is now invalid loses its document."""
        self.finish()
        self._count_failure(failure)
        self._report_progress()

    def remove(self, paths: Iterable[str]) -> None:
        """Remove the documents under `paths`."""
        self.finish()
        for path in paths:
            self.tally.removed += self._documents.remove(path)
            self._report_progress()

    def _report_progress(self) -> None:
        if time.monotonic() > self._deadline:
            raise WorkerTimeExpired
        if self._report and time.monotonic() - self._reported_at > _REPORT_INTERVAL_SECONDS:
            self._reported_at = time.monotonic()
            self._report(self.tally)
