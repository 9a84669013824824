"""Bringing documents into a collection: at once where they are few, else by a worker that can be killed and goes on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from shared.knowledge.file_source import InvalidFile
from shared.knowledge.models import DocumentFailure, IngestionTally
from shared.rpc.errors import KhoError, OutOfTime, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from shared.knowledge.documents import CollectionDocuments
    from shared.knowledge.file_source import FileListing
    from shared.knowledge.ingestion_jobs import IngestionJob, IngestionJobs
    from shared.knowledge.models import NewKnowledgeDocument

_AT_ONCE_BYTES: Final = 24 * 1024
"""What is embedded within the five seconds that seed 004 gives a simple call, on one slow core too."""
_REPORTED_EVERY_SECONDS: Final = 0.5
_PAGE: Final = 1000


def is_long(documents: CollectionDocuments, new: Sequence[NewKnowledgeDocument]) -> bool:
    """Whether bringing in what is not there yet takes longer than a caller waits."""
    if _bytes(new) <= _AT_ONCE_BYTES:
        return False
    there = documents.fields_of("hash", (each.path for each in new))
    changed = [each for each in new if there.get(each.path) != each.hash]
    return _bytes(changed) > _AT_ONCE_BYTES


def _bytes(documents: Sequence[NewKnowledgeDocument]) -> int:
    return sum(len(each.text.encode("utf-8")) for each in documents)


def vanished(documents: CollectionDocuments, findings: FileListing, seen: Container[str] = ()) -> list[str]:
    """What was read where the files were found, and is none of those `seen` there now."""
    gone: list[str] = []
    cursor: str | None = None
    while True:
        stored, cursor = documents.page(_PAGE, cursor)
        gone += [
            each.path
            for each in stored
            if each.tree == findings.tree and findings.covers(each.path) and each.path not in seen
        ]
        if cursor is None:
            return gone


class WorkerTimeExpired(Exception):
    """A worker's time is over before its work; another goes on."""


class DocumentIngestion:
    """Documents on their way into one collection, and what has become of them."""

    def __init__(
        self,
        documents: CollectionDocuments,
        told: Callable[[IngestionTally], None] | None = None,
        *,
        seconds: float = float("inf"),
    ) -> None:
        self.tally = IngestionTally()
        self._until = time.monotonic() + seconds
        self._documents = documents
        self._told = told
        self._told_at = 0.0

    def bring(self, new: NewKnowledgeDocument | DocumentFailure) -> None:
        """Bring one document in; what is wrong with it alone does not keep others out."""
        if isinstance(new, DocumentFailure):
            self._fail(new)
            return
        try:
            brought = self._documents.put(new)
        except (Unavailable, OutOfTime):
            raise  # not for what it is: nothing else would go in either
        except KhoError as refusal:
            # What a file says now takes the place of what it said, though nothing of it can be kept.
            fate = InvalidFile if new.origin == "file" else DocumentFailure
            self._fail(fate(new.path, refusal.message.removeprefix(new.path).strip()))
            return
        setattr(self.tally, brought.outcome, getattr(self.tally, brought.outcome) + 1)
        self.tally.chunks += brought.chunks
        self.tally.pending += brought.pending
        self._tell()

    def bring_all(self, new: Iterable[NewKnowledgeDocument | DocumentFailure]) -> None:
        """Bring in each of them."""
        for each in new:
            self.bring(each)

    def remove(self, paths: Iterable[str]) -> None:
        """Take out what is there under each of `paths`."""
        for path in paths:
            self.tally.removed += self._documents.remove(path)
            self._tell()

    def follow(self, findings: FileListing) -> None:
        """Let the collection hold what the files say: new, changed, and without those that are gone."""
        seen = set()
        for file in findings.files():
            seen.add(file.path)
            if isinstance(file, DocumentFailure):
                self._fail(file)
                continue
            there = self._documents.find(file.path)
            if there and there.hash == file.hash and there.indexed and there.tree == findings.tree:
                self.tally.unchanged += 1
                self.tally.chunks += there.chunks
                self._tell()
            else:
                self.bring(file.document())
        if findings.is_folder or findings.absent:
            self.remove(vanished(self._documents, findings, seen))

    def _fail(self, failure: DocumentFailure) -> None:
        self.tally.failed.append(failure)
        if isinstance(failure, InvalidFile):
            self.remove([failure.path])
        self._tell()

    def _tell(self) -> None:
        if time.monotonic() > self._until:
            raise WorkerTimeExpired
        if self._told and time.monotonic() - self._told_at > _REPORTED_EVERY_SECONDS:
            self._told_at = time.monotonic()
            self._told(self.tally)


def carry_out(
    job: IngestionJob,
    jobs: IngestionJobs,
    documents: CollectionDocuments,
    find: Callable[[], FileListing] | None,
    seconds: float,
) -> IngestionTally | None:
    """What comes of a job, carried out from wherever it was left; none where `seconds` are over and another goes on.

    `find` finds the files of one that reads.
    """
    findings = find() if find else None
    total = findings.total if findings else job.total
    ingestion = DocumentIngestion(
        documents, lambda tally: jobs.report(job.id, "running", tally, total=total), seconds=seconds
    )
    try:
        if findings:
            ingestion.follow(findings)
        else:
            ingestion.bring_all(jobs.todo(job))
            ingestion.remove(jobs.removed(job.id))
    except WorkerTimeExpired:
        jobs.report(job.id, "running", ingestion.tally, total=total)
        jobs.go_on(job.id)
        return None
    return ingestion.tally
