"""Ingestions carried out by a worker, within what an item of the table may hold and for as long as they take."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from shared import telemetry
from shared.config import config
from shared.dynamodb import Table
from shared.knowledge import documents as kept
from shared.knowledge.collections import Collections
from shared.knowledge.jobs import Job, Jobs
from shared.knowledge.models import MAX_PATH_BYTES, Collection, NewDocument
from shared.knowledge.space import current_space
from workers import ingest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BLANK = " "


@pytest.fixture
def table() -> Table:
    return Table(config().knowledge_table)


@pytest.fixture
def collection(table: Table, tenant: str) -> Collection:
    return Collections(table, tenant).create("notes", "fundamental", current_space())


@pytest.fixture
def carried_out(table: Table, tenant: str, collection: Collection) -> Callable[..., Job]:
    """What a job has come to once a worker has been brought it."""
    jobs = Jobs(table, tenant)

    def carry_out(documents: Sequence[NewDocument], removed: Sequence[str] = ()) -> Job:
        job_id = jobs.start(collection, documents, removed)
        keys = {"pk": {"S": f"{tenant}#work"}, "sk": {"S": f"ingest#{job_id}#1"}}
        record = {"eventID": "1", "eventName": "INSERT", "dynamodb": {"Keys": keys, "SequenceNumber": "1"}}
        answer = ingest.handler({"Records": [record], "eventSource": "aws:dynamodb"}, None)
        assert answer == {"batchItemFailures": []}
        return jobs.require(job_id)

    return carry_out


def test_many_failures_under_long_paths_are_counted_and_listed_as_far_as_there_is_room(
    carried_out: Callable[..., Job],
) -> None:
    paths = [f"{number:04}{'p' * (MAX_PATH_BYTES - 4)}" for number in range(240)]
    job = carried_out([NewDocument(path, BLANK, hash="h") for path in paths])
    assert (job.status, job.tally.documents, job.tally.failures) == ("done", 240, 240)
    listed = [each.path for each in job.tally.failed]
    assert listed == paths[: len(listed)]
    assert 100 < len(listed) < 240
    assert {each.reason for each in job.tally.failed} == {"holds no text"}


def test_a_thousand_long_paths_are_taken_out(carried_out: Callable[..., Job]) -> None:
    paths = [f"{number:04}{'p' * (MAX_PATH_BYTES - 4)}" for number in range(1000)]
    carried_out([NewDocument(paths[999], "Ferns.", hash="h")])
    assert carried_out([], [*paths, "é" * MAX_PATH_BYTES]).tally.removed == 1


def test_what_crashes_fails_and_keeps_nobody_waiting(
    carried_out: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    def crashes(*_: Any) -> None:
        raise ArithmeticError

    monkeypatch.setattr(kept.Documents, "put", crashes)
    job = carried_out([NewDocument("a.md", "Ferns.", hash="h")])
    assert job.status == "failed"
    assert "Arithmetic" not in job.message


def test_a_worker_takes_longer_than_a_request_may(
    carried_out: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = time.perf_counter
    split = kept.Documents._split

    def slow(self: kept.Documents, new: NewDocument) -> Any:
        monkeypatch.setattr(time, "perf_counter", lambda: clock() + telemetry.REQUEST_SECONDS + 60)
        return split(self, new)

    monkeypatch.setattr(kept.Documents, "_split", slow)
    job = carried_out([NewDocument("a.md", "Ferns.", hash="h"), NewDocument("b.md", "Moss.", hash="h")])
    assert (job.status, job.tally.added, job.tally.failed) == ("done", 2, [])


def test_a_collection_that_is_deleted_meanwhile_has_not_got_it(
    carried_out: Callable[..., Job], table: Table, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    split = kept.Documents._split

    def deleting(self: kept.Documents, new: NewDocument) -> Any:
        Collections(table, tenant).delete("notes")
        Collections(table, tenant).create("notes", "fundamental", current_space())
        return split(self, new)

    monkeypatch.setattr(kept.Documents, "_split", deleting)
    job = carried_out([NewDocument("a.md", "Ferns.", hash="h")])
    assert (job.status, job.message) == ("failed", "Collection not found: notes")
