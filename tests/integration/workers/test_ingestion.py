"""Ingestion jobs run by a worker, within the size of a table item and the job's time limit."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from research_agent import get_ingestion
from shared.aws.dead_letters import CRASHED
from shared.aws.dynamodb import Keys, Table, Write
from shared.knowledge import documents as kept
from shared.knowledge.collections import CollectionStore
from shared.knowledge.ingestion_jobs import STALLED_SECONDS, IngestionJob, IngestionJobs
from shared.knowledge.models import MAX_PATH_BYTES, Collection, NewKnowledgeDocument
from shared.knowledge.recorded_space import recorded_space
from shared.platform.config import config
from shared.rpc import observation
from shared.rpc.caller import ROLES, Caller
from shared.search.index import knowledge_index
from tests.helpers.stream_deliveries import LATE_SECONDS, deliver, letters_of, stream_record
from tests.helpers.wait import CEILING_SECONDS
from workers import ingest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BLANK = " "


@pytest.fixture
def table() -> Table:
    return Table(config().knowledge_table)


@pytest.fixture
def collection(table: Table, tenant: str) -> Collection:
    return CollectionStore(table, tenant).create("notes", "fundamental", recorded_space())


@pytest.fixture
def carried_out(table: Table, tenant: str, collection: Collection) -> Callable[..., IngestionJob]:
    """Return a function that runs a job by a worker and returns its state."""
    jobs = IngestionJobs(table, tenant)

    def carry_out(documents: Sequence[NewKnowledgeDocument], removed: Sequence[str] = ()) -> IngestionJob:
        job_id = jobs.start(collection, documents, removed)
        run_worker(tenant, job_id)
        return jobs.require(job_id)

    return carry_out


def run_worker(tenant: str, job_id: str) -> None:
    keys = {"pk": {"S": f"{tenant}#work"}, "sk": {"S": f"ingest#{job_id}#1"}}
    record = {"eventID": "1", "eventName": "INSERT", "dynamodb": {"Keys": keys, "SequenceNumber": "1"}}
    assert ingest.handler({"Records": [record], "eventSource": "aws:dynamodb"}, None) == {"batchItemFailures": []}


def test_failures_are_counted_and_listed_within_the_item_limit(
    carried_out: Callable[..., IngestionJob],
) -> None:
    paths = [f"{number:04}{'p' * (MAX_PATH_BYTES - 4)}" for number in range(240)]
    job = carried_out([NewKnowledgeDocument(path, BLANK, hash="h") for path in paths])
    assert (job.status, job.tally.documents, job.tally.failures) == ("done", 240, 240)
    listed = [each.path for each in job.tally.failed]
    assert listed == paths[: len(listed)]
    assert 100 < len(listed) < 240
    assert {each.reason for each in job.tally.failed} == {"holds no text"}


def test_a_thousand_long_paths_are_removed(carried_out: Callable[..., IngestionJob]) -> None:
    paths = [f"{number:04}{'p' * (MAX_PATH_BYTES - 4)}" for number in range(1000)]
    carried_out([NewKnowledgeDocument(paths[999], "Ferns.", hash="h")])
    assert carried_out([], [*paths, "é" * MAX_PATH_BYTES]).tally.removed == 1


def test_document_that_crashes_is_a_failure_and_the_others_are_ingested(
    carried_out: Callable[..., IngestionJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    split = kept.CollectionDocuments._split

    def crash(self: kept.CollectionDocuments, new: NewKnowledgeDocument) -> Any:
        if new.path == "b.md":
            raise ArithmeticError(new.text)
        return split(self, new)

    monkeypatch.setattr(kept.CollectionDocuments, "_split", crash)
    job = carried_out([NewKnowledgeDocument(f"{name}.md", f"Ferns of {name}.", hash="h") for name in "abc"])
    assert (job.status, job.tally.added, [each.path for each in job.tally.failed]) == ("done", 2, ["b.md"])
    assert job.tally.failed[0].reason.startswith("failed by an internal error: ")
    assert "Ferns" not in job.tally.failed[0].reason


def job_record(tenant: str, job_id: str, **details: Any) -> dict[str, Any]:
    return stream_record(f"{tenant}#work", f"ingest#{job_id}#1", **details)


def test_job_that_crashes_is_given_up_after_three_attempts(
    table: Table, tenant: str, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = IngestionJobs(table, tenant)
    job_id = jobs.start(collection, [NewKnowledgeDocument("a.md", "Ferns.", hash="h")], [])

    def crash(*_: Any) -> None:
        raise ArithmeticError

    monkeypatch.setattr(IngestionJobs, "documents", crash)
    record = job_record(tenant, job_id)
    assert [deliver(ingest.handler, record) for _ in range(2)] == [["1"], ["1"]]
    assert jobs.require(job_id).status == "running"
    assert deliver(ingest.handler, record) == []
    job = jobs.require(job_id)
    assert (job.status, job.message) == ("failed", "The ingestion was ended by an internal error three times.")
    assert [(each.method, each.code, each.sk) for each in letters_of(tenant)] == [
        ("workers/ingest", "INTERNAL_ERROR", f"ingest#{job_id}#1")
    ]


class Killed(BaseException):
    """The end of the server's process."""


def test_job_that_goes_on_is_not_given_up_however_often_its_server_is_killed(
    table: Table, tenant: str, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job survives the end of its server, as long as it gets further between two of them."""
    jobs = IngestionJobs(table, tenant)
    names = [f"{number}.md" for number in range(8)]
    job_id = jobs.start(collection, [NewKnowledgeDocument(each, f"Ferns of {each}.", hash="h") for each in names], [])
    report = IngestionJobs.report

    def report_and_die(self: IngestionJobs, id_: str, status: Any, tally: Any, **details: Any) -> None:
        report(self, id_, status, tally, **details)
        if status == "running":
            raise Killed

    monkeypatch.setattr("shared.knowledge.ingestion._REPORT_INTERVAL_SECONDS", -1.0)
    with monkeypatch.context() as killed:
        killed.setattr(IngestionJobs, "report", report_and_die)
        for _ in range(len(names)):
            with pytest.raises(Killed):
                deliver(ingest.handler, job_record(tenant, job_id, age=LATE_SECONDS))
    assert deliver(ingest.handler, job_record(tenant, job_id, age=LATE_SECONDS)) == []
    job = jobs.require(job_id)
    assert (job.status, job.tally.documents, letters_of(tenant)) == ("done", len(names), [])


def test_restarted_job_counts_what_it_did_before_its_worker_was_killed(
    table: Table, tenant: str, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counts of a job whose worker was killed before it could report are those of a job that was not."""
    jobs = IngestionJobs(table, tenant)
    before = [NewKnowledgeDocument(path, "Ferns.", hash="old") for path in ("changed.md", "gone.md", "same.md")]
    run_worker(tenant, jobs.start(collection, before, []))
    new = [NewKnowledgeDocument(f"{number}.md", "Moss.", hash="new") for number in range(3)]
    new += [NewKnowledgeDocument("changed.md", "Moss.", hash="new"), before[2]]
    job_id = jobs.start(collection, new, ["gone.md"])
    monkeypatch.setattr("shared.knowledge.ingestion._REPORT_INTERVAL_SECONDS", float("inf"))
    with monkeypatch.context() as killed:
        killed.setattr(CollectionStore, "require_unchanged", killed_at(2))
        with pytest.raises(Killed):
            deliver(ingest.handler, job_record(tenant, job_id, age=LATE_SECONDS))
    assert jobs.require(job_id).tally.documents == 0, "nothing of it was reported"
    run_worker(tenant, job_id)
    tally = jobs.require(job_id).tally
    assert (tally.added, tally.updated, tally.unchanged, tally.removed) == (3, 1, 1, 1)


def killed_at(number: int) -> Callable[..., None]:
    """Return a function that raises Killed at one of its calls."""
    calls = iter(range(1, number + 1))

    def call(*_: Any) -> None:
        if next(calls) == number:
            raise Killed

    return call


def test_job_whose_server_is_killed_three_times_at_one_place_is_given_up(
    table: Table, tenant: str, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = IngestionJobs(table, tenant)
    job_id = jobs.start(collection, [NewKnowledgeDocument("a.md", "Ferns.", hash="h")], [])

    def die(*_: Any) -> None:
        raise Killed

    monkeypatch.setattr(IngestionJobs, "documents", die)
    for _ in range(3):
        with pytest.raises(Killed):
            deliver(ingest.handler, job_record(tenant, job_id, age=LATE_SECONDS))
    assert deliver(ingest.handler, job_record(tenant, job_id, age=LATE_SECONDS)) == []
    assert jobs.require(job_id).status == "failed"
    assert [each.code for each in letters_of(tenant)] == [CRASHED]


def test_worker_may_exceed_the_request_deadline(
    carried_out: Callable[..., IngestionJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = time.perf_counter
    split = kept.CollectionDocuments._split

    def slow(self: kept.CollectionDocuments, new: NewKnowledgeDocument) -> Any:
        monkeypatch.setattr(time, "perf_counter", lambda: clock() + observation.REQUEST_SECONDS + 60)
        return split(self, new)

    monkeypatch.setattr(kept.CollectionDocuments, "_split", slow)
    job = carried_out(
        [NewKnowledgeDocument("a.md", "Ferns.", hash="h"), NewKnowledgeDocument("b.md", "Moss.", hash="h")]
    )
    assert (job.status, job.tally.added, job.tally.failed) == ("done", 2, [])


def test_documents_are_ingested_at_once(
    carried_out: Callable[..., IngestionJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The barrier ends only if as many documents as allowed are in progress together."""
    together = threading.Barrier(config().embedding_calls)
    split = kept.CollectionDocuments._split

    def waiting(self: kept.CollectionDocuments, new: NewKnowledgeDocument) -> Any:
        together.wait(CEILING_SECONDS)
        return split(self, new)

    monkeypatch.setattr(kept.CollectionDocuments, "_split", waiting)
    names = [f"{number}.md" for number in range(2 * together.parties)]
    job = carried_out([NewKnowledgeDocument(name, f"Ferns of {name}.", hash="h") for name in names])
    assert (job.status, job.tally.added) == ("done", len(names))


def test_later_document_of_a_path_replaces_the_earlier(
    carried_out: Callable[..., IngestionJob], table: Table, tenant: str, collection: Collection
) -> None:
    texts = [NewKnowledgeDocument("a.md", f"Text {number}.", hash=str(number)) for number in range(9)]
    job = carried_out(texts)
    assert (job.tally.added, job.tally.updated) == (1, 8)
    stored = kept.CollectionDocuments(table, tenant, collection, knowledge_index()).find("a.md")
    assert stored is not None
    assert stored.hash == "8"


def test_ingestion_into_a_deleted_collection_fails(
    carried_out: Callable[..., IngestionJob], table: Table, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    split = kept.CollectionDocuments._split

    def deleting(self: kept.CollectionDocuments, new: NewKnowledgeDocument) -> Any:
        CollectionStore(table, tenant).delete("notes")
        CollectionStore(table, tenant).create("notes", "fundamental", recorded_space())
        return split(self, new)

    monkeypatch.setattr(kept.CollectionDocuments, "_split", deleting)
    job = carried_out([NewKnowledgeDocument("a.md", "Ferns.", hash="h")])
    assert (job.status, job.message) == ("failed", "Collection not found: notes")


@pytest.mark.parametrize("turns", [[0, 1, 2, 3], [0, 2, 3]], ids=["one at once", "two at once"])
def test_long_ingestion_takes_turns_and_counts_each_document_once(
    table: Table,
    tenant: str,
    collection: Collection,
    monkeypatch: pytest.MonkeyPatch,
    turns: list[int],
) -> None:
    monkeypatch.setattr(ingest, "_TURN_SECONDS", -1)  # over after the first documents
    monkeypatch.setattr(config(), "embedding_calls", turns[1])
    jobs = IngestionJobs(table, tenant)
    texts = {"a.md": "Ferns.", "b.md": BLANK, "c.md": "Moss."}
    documents = [NewKnowledgeDocument(path, text, hash=path) for path, text in texts.items()]
    job_id = jobs.start(collection, documents, [])
    counts = []
    while (job := jobs.require(job_id)).status != "done":
        counts.append(job.tally.documents)
        run_worker(tenant, job_id)
    assert counts == turns
    work = [item["sk"] for page in table.query(f"{tenant}#work", Keys.beginning("ingest#")) for item in page]
    assert len(work) == len(turns), "each turn enqueues the next one"
    assert (job.tally.added, job.tally.unchanged, job.tally.failures) == (2, 0, 1)


@pytest.mark.parametrize(("idle", "status"), [(0, "queued"), (STALLED_SECONDS + 60, "stalled")])
def test_job_that_no_worker_moves_is_stalled(
    table: Table, tenant: str, collection: Collection, idle: int, status: str
) -> None:
    job_id = IngestionJobs(table, tenant).start(collection, [NewKnowledgeDocument("a.md", "Ferns.", hash="h")], [])
    at = (datetime.now(UTC) - timedelta(seconds=idle)).isoformat()
    key = {"pk": f"{tenant}#job#{job_id}", "sk": "job"}
    table.write(Write("Update", key, expression="SET updated_at = :at", values={":at": at}))
    call = {"params": {"job_id": job_id}, "caller": Caller("t", frozenset(ROLES), tenant).record()}
    result = get_ingestion.handler(call | {"method": "", "correlation_id": "stalled"}, None)["result"]
    assert result["status"] == status
    assert ("Nothing has happened for" in result["message"]) is (status == "stalled")
