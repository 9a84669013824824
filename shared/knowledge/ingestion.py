"""Ingestion of documents into a collection: within the request if they are few, else by a worker.

A worker may be killed at any time. The next one resumes with the last tally; documents that are already stored are
unchanged.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from shared.knowledge.folder_sync import InvalidFile
from shared.knowledge.models import DocumentFailure, IngestionTally
from shared.rpc.errors import KhoError, OutOfTime, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from shared.knowledge.documents import CollectionDocuments
    from shared.knowledge.models import NewKnowledgeDocument, StoredFile

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
    ) -> None:
        self.tally = tally or IngestionTally()
        self._deadline = time.monotonic() + seconds
        self._documents = documents
        self.find, self.stored = documents.find, documents.stored
        self._report = report
        self._reported_at = 0.0

    def skip(self, stored: StoredFile) -> None:
        """Count an unchanged document."""
        self.tally.unchanged += 1
        self.tally.chunks += stored.chunks
        self._report_progress()

    def add(self, new: NewKnowledgeDocument) -> None:
        """Add or replace one document. An error that concerns only this document is counted, not raised."""
        try:
            result = self._documents.put(new)
        except (Unavailable, OutOfTime):
            raise  # the other documents would fail as well
        except KhoError as error:
            # The file has changed, so the document of its former content goes, although the new content is refused.
            failure = InvalidFile if new.origin == "file" else DocumentFailure
            self.fail(failure(new.path, error.message.removeprefix(new.path).strip()))
            return
        setattr(self.tally, result.outcome, getattr(self.tally, result.outcome) + 1)
        self.tally.chunks += result.chunks
        self.tally.pending += result.pending
        self._report_progress()

    def add_all(self, new: Iterable[NewKnowledgeDocument | DocumentFailure]) -> None:
        """Add each document and record each failure."""
        for each in new:
            if isinstance(each, DocumentFailure):
                self.fail(each)
            else:
                self.add(each)

    def fail(self, failure: DocumentFailure) -> None:
        """Record a document that cannot be ingested. A file that is now invalid loses its document."""
        self.tally.failed.append(failure)
        if isinstance(failure, InvalidFile):
            self.remove([failure.path])
        self._report_progress()

    def remove(self, paths: Iterable[str]) -> None:
        """Remove the documents under `paths`."""
        for path in paths:
            self.tally.removed += self._documents.remove(path)
            self._report_progress()

    def _report_progress(self) -> None:
        if time.monotonic() > self._deadline:
            raise WorkerTimeExpired
        if self._report and time.monotonic() - self._reported_at > _REPORT_INTERVAL_SECONDS:
            self._reported_at = time.monotonic()
            self._report(self.tally)
