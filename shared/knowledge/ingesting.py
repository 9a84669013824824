"""Bringing documents into a collection: at once where they are few, else by a worker that can be killed and goes on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from shared.knowledge.models import Failure, Tally
from shared.knowledge.reading import Unfit
from shared.rpc.errors import KhoError, OutOfTime, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from shared.knowledge.documents import Documents
    from shared.knowledge.jobs import Job, Jobs
    from shared.knowledge.models import NewDocument
    from shared.knowledge.reading import Findings

_AT_ONCE_BYTES: Final = 24 * 1024
"""What is embedded within the five seconds that seed 004 gives a simple call, on one slow core too."""
_REPORTED_EVERY_SECONDS: Final = 0.5
_PAGE: Final = 1000


def is_long(documents: Documents, new: Sequence[NewDocument]) -> bool:
    """Whether bringing in what is not there yet takes longer than a caller waits."""
    if _bytes(new) <= _AT_ONCE_BYTES:
        return False
    there = documents.told("hash", (each.path for each in new))
    changed = [each for each in new if there.get(each.path) != each.hash]
    return _bytes(changed) > _AT_ONCE_BYTES


def _bytes(documents: Sequence[NewDocument]) -> int:
    return sum(len(each.text.encode("utf-8")) for each in documents)


def vanished(documents: Documents, findings: Findings, seen: Container[str] = ()) -> list[str]:
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


class TurnOver(Exception):
    """A worker's time is over before its work; another goes on."""


class Ingestion:
    """Documents on their way into one collection, and what has become of them."""

    def __init__(
        self, documents: Documents, told: Callable[[Tally], None] | None = None, *, seconds: float = float("inf")
    ) -> None:
        self.tally = Tally()
        self._until = time.monotonic() + seconds
        self._documents = documents
        self._told = told
        self._told_at = 0.0

    def bring(self, new: NewDocument | Failure) -> None:
        """Bring one document in; what is wrong with it alone does not keep others out."""
        if isinstance(new, Failure):
            self._fail(new)
            return
        try:
            brought = self._documents.put(new)
        except (Unavailable, OutOfTime):
            raise  # not for what it is: nothing else would go in either
        except KhoError as refusal:
            # What a file says now takes the place of what it said, though nothing of it can be kept.
            fate = Unfit if new.origin == "file" else Failure
            self._fail(fate(new.path, refusal.message.removeprefix(new.path).strip()))
            return
        setattr(self.tally, brought.outcome, getattr(self.tally, brought.outcome) + 1)
        self.tally.chunks += brought.chunks
        self.tally.pending += brought.pending
        self._tell()

    def bring_all(self, new: Iterable[NewDocument | Failure]) -> None:
        """Bring in each of them."""
        for each in new:
            self.bring(each)

    def remove(self, paths: Iterable[str]) -> None:
        """Take out what is there under each of `paths`."""
        for path in paths:
            self.tally.removed += self._documents.remove(path)
            self._tell()

    def follow(self, findings: Findings) -> None:
        """Let the collection hold what the files say: new, changed, and without those that are gone."""
        seen = set()
        for file in findings.files():
            seen.add(file.path)
            if isinstance(file, Failure):
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

    def _fail(self, failure: Failure) -> None:
        self.tally.failed.append(failure)
        if isinstance(failure, Unfit):
            self.remove([failure.path])
        self._tell()

    def _tell(self) -> None:
        if time.monotonic() > self._until:
            raise TurnOver
        if self._told and time.monotonic() - self._told_at > _REPORTED_EVERY_SECONDS:
            self._told_at = time.monotonic()
            self._told(self.tally)


def carry_out(
    job: Job, jobs: Jobs, documents: Documents, find: Callable[[], Findings] | None, seconds: float
) -> Tally | None:
    """What comes of a job, carried out from wherever it was left; none where `seconds` are over and another goes on.

    `find` finds the files of one that reads.
    """
    findings = find() if find else None
    total = findings.total if findings else job.total
    ingestion = Ingestion(documents, lambda tally: jobs.report(job.id, "running", tally, total=total), seconds=seconds)
    try:
        if findings:
            ingestion.follow(findings)
        else:
            ingestion.bring_all(jobs.todo(job))
            ingestion.remove(jobs.removed(job.id))
    except TurnOver:
        jobs.report(job.id, "running", ingestion.tally, total=total)
        jobs.go_on(job.id)
        return None
    return ingestion.tally
