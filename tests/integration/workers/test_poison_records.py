"""Records that fail: which are tried again, which are given up, and what goes on meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from api.stream_records import StreamRecord, stream_worker
from infra.local import streams
from shared.aws import dead_letters, delivery_attempts
from shared.aws.dead_letters import CRASHED
from shared.aws.dynamodb import Table, Write
from shared.documents import keys
from shared.memory.conversations import Conversations
from shared.platform.config import ConfigurationError, config
from shared.rpc.errors import OutOfTime, TooManyRequests, Unavailable
from shared.rpc.invocation import FunctionCrashed
from shared.search.index import knowledge_index
from tests.helpers.aws_stack import ENVIRONMENT, running_aws_stack
from tests.helpers.dynamodb_requests import answer_operation, intercept_requests
from tests.helpers.log_records import log_records
from tests.helpers.store_faults import FAILED
from tests.helpers.stream_deliveries import LATE_SECONDS, deliver, letters_of, running_worker, stream_record
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.helpers.document_agent import DocumentAgent
    from tests.helpers.dynamodb_requests import Refusal

METHOD = "workers/index_documents"


class Killed(BaseException):
    """The end of a function's process: no handler of exceptions runs."""


class Work:
    """The work of a worker, which fails as a test says."""

    def __init__(self) -> None:
        self.failures: dict[str, BaseException] = {}
        """By sort key."""
        self.done: list[str] = []
        self.tried: list[str] = []
        self.worker = stream_worker(METHOD)(self.process)

    def process(self, record: StreamRecord) -> None:
        self.tried.append(record.sk)
        if failure := self.failures.get(record.sk):
            raise failure
        self.done.append(record.sk)


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deliver failed records again after a short pause."""
    monkeypatch.setattr(streams, "_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(streams, "_MAX_RETRY_SECONDS", 0.02)


def damage(tenant: str, document_id: str) -> None:
    """Make the document's item one that cannot be indexed."""
    key = {"pk": keys.document(tenant, document_id), "sk": "document"}
    Table(config().documents_table).write(Write("Update", key, "SET metadata = :text", values={":text": "{"}))


def is_indexed(tenant: str, *document_ids: str) -> bool:
    from shared.documents.index import COLLECTION
    from shared.search.passages import DocumentRef

    return all(knowledge_index().holds(DocumentRef(tenant, COLLECTION, each), 1) for each in document_ids)


# One document among others, over the real stream


@pytest.mark.usefixtures("hasty")
def test_document_that_cannot_be_indexed_blocks_no_other(
    agent: DocumentAgent, store: str, tmp_path: Path, log: Path
) -> None:
    """A document that fails is tried three times, then it is a dead letter, and the others are indexed."""
    for name in ("before", "poison", "after"):
        agent.create(name, body=f"Ferns of {name}.")
    damage(agent.tenant, "poison")
    with running_worker("workers-index_documents", agent.tenant, store, tmp_path):
        until(lambda: is_indexed(agent.tenant, "before", "after"))
        # The creation and the damage are a record each.
        until(lambda: len(letters_of(agent.tenant)) == 2)
    letters = letters_of(agent.tenant)
    assert {(each.method, each.code, each.pk, each.sk) for each in letters} == {
        (METHOD, "INTERNAL_ERROR", keys.document(agent.tenant, "poison"), "document")
    }
    failures = [each for each in log_records(log, "called") if each["outcome"] == "INTERNAL_ERROR"]
    assert len(failures) == 6
    assert {each["correlation_id"] for each in failures} == {each.correlation_id for each in letters}


@pytest.mark.usefixtures("hasty")
def test_document_that_was_given_up_is_indexed_at_its_next_change(
    agent: DocumentAgent, store: str, tmp_path: Path
) -> None:
    """A new revision of a document that was given up has three attempts again."""
    agent.create("poison", body="Ferns.")
    damage(agent.tenant, "poison")
    with running_worker("workers-index_documents", agent.tenant, store, tmp_path):
        until(lambda: len(letters_of(agent.tenant)) == 2)
        damaged = {"pk": keys.document(agent.tenant, "poison"), "sk": "document"}
        Table(config().documents_table).write(Write("Update", damaged, "SET metadata = :text", values={":text": "{}"}))
        until(lambda: is_indexed(agent.tenant, "poison"))
    assert len(letters_of(agent.tenant)) == 2


# The function and the store, over the real stream

_KILLED_AT_ONE_CONVERSATION = """
import json, os, signal, sys
from api import stream_records
from shared.memory.conversations import Conversations
from workers import purge_messages

stream_records._FRESH_SECONDS = 0.0
purge = Conversations.purge

def kill(conversations, generation):
    if generation == sys.argv[1]:
        os.kill(os.getpid(), signal.SIGKILL)
    purge(conversations, generation)

Conversations.purge = kill
print(json.dumps(purge_messages.handler(json.load(sys.stdin), None)))
"""


def functions_in_processes(generation: str) -> Callable[[str, bytes], bytes]:
    """Return a transport that runs each invocation in a process, which is killed while it purges one generation."""

    def run(function: str, payload: bytes) -> bytes:
        command = [sys.executable, "-c", _KILLED_AT_ONE_CONVERSATION, generation]
        # The embedded index is open in this process.
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "KHO_MESSAGE_INDEX": "false"}
        done = subprocess.run(command, input=payload, env=environment, capture_output=True, check=False)
        if done.returncode:
            assert done.returncode == -signal.SIGKILL, done.stderr.decode()
            raise FunctionCrashed(function)
        return done.stdout.splitlines()[-1]  # after the log

    return run


@pytest.mark.usefixtures("hasty")
def test_record_that_kills_the_functions_process_blocks_no_other(tenant: str, store: str, tmp_path: Path) -> None:
    """A process that is killed at one record, as for a lack of memory, is started again for the others."""
    generations = cleared_conversations(tenant, "before", "poison", "after")
    functions = functions_in_processes(generations["poison"])
    with running_worker("workers-purge_messages", tenant, store, tmp_path, functions):
        until(lambda: messages_left(tenant) == {generations["poison"]} and letters_of(tenant))
    assert [(each.method, each.code, each.sk) for each in letters_of(tenant)] == [
        ("workers/purge_messages", CRASHED, f"purge#{generations['poison']}")
    ]


@pytest.mark.usefixtures("hasty")
def test_records_wait_in_order_while_the_store_does_not_answer(tenant: str, store: str, tmp_path: Path) -> None:
    """No record is given up however often the store fails, and each is processed once the store is back."""
    generations = cleared_conversations(tenant, "a", "b", "c")
    failures: list[Any] = []

    def fail(params: Any) -> Refusal | None:
        is_purging = any(each in json.dumps(params) for each in generations.values())
        if not is_purging or len(failures) == 60:
            return None
        failures.append(params)
        return FAILED

    with (
        intercept_requests(answer_operation("Query", fail)),
        running_worker("workers-purge_messages", tenant, store, tmp_path),
    ):
        until(lambda: not messages_left(tenant))
    assert len(failures) == 60
    assert letters_of(tenant) == []


def cleared_conversations(tenant: str, *names: str) -> dict[str, str]:
    """Write and clear conversations. Return their former generations."""
    conversations = Conversations(Table(config().memory_table), tenant)
    generations = {}
    for name in names:
        conversations.append(name, "user", "Ferns.")
        generations[name] = conversations.require(name).generation
        conversations.clear(name)
    return generations


def messages_left(tenant: str) -> set[str]:
    """Return the generations of which messages are stored."""
    pages = Table(config().memory_table).scan(f"{tenant}#messages#")
    return {item["pk"].rpartition("#")[2] for page in pages for item in page}


# Which failures count


@pytest.mark.parametrize(
    "failure", [Unavailable(), OutOfTime(), TooManyRequests(), ConfigurationError("Qdrant rejects the key")]
)
@pytest.mark.parametrize("age", [0.0, LATE_SECONDS])
def test_record_waits_while_a_service_does_not_answer(tenant: str, work: Work, failure: Exception, age: float) -> None:
    record = stream_record(tenant, "a", age=age)
    work.failures["a"] = failure
    for _ in range(2 * delivery_attempts.MAX_ATTEMPTS):
        assert deliver(work.worker, record) == ["1"]
    del work.failures["a"]
    assert deliver(work.worker, record) == []
    assert (work.done, letters_of(tenant)) == (["a"], [])


@pytest.mark.parametrize("age", [0.0, LATE_SECONDS])
def test_only_failures_of_the_record_itself_count(tenant: str, work: Work, age: float) -> None:
    record = stream_record(tenant, "a", age=age)
    for failure in (ValueError(), Unavailable(), ValueError(), Unavailable()):
        work.failures["a"] = failure
        assert deliver(work.worker, record) == ["1"]
    work.failures["a"] = ValueError()
    assert deliver(work.worker, record) == []
    [letter] = letters_of(tenant)
    assert (letter.code, letter.pk, letter.sk, letter.event) == ("INTERNAL_ERROR", tenant, "a", "INSERT")


def test_texts_that_crash_the_embedding_function_count(tenant: str, work: Work) -> None:
    failure = Unavailable()
    failure.__cause__ = FunctionCrashed("workers-embed_texts")
    work.failures["a"] = failure
    outcomes = [deliver(work.worker, stream_record(tenant, "a")) for _ in range(3)]
    assert outcomes == [["1"], ["1"], []]
    assert [each.code for each in letters_of(tenant)] == ["UNAVAILABLE"]


def test_function_that_is_killed_by_a_record_gives_it_up(tenant: str, work: Work) -> None:
    """A record on which the function crashes, or runs out of memory or time, is tried three times."""
    record = stream_record(tenant, "a", age=LATE_SECONDS)
    work.failures["a"] = Killed()
    for _ in range(3):
        with pytest.raises(Killed):
            deliver(work.worker, record)
    delivery_attempts._running.clear()  # the process has ended
    assert deliver(work.worker, record) == []
    assert len(work.tried) == 3
    assert [(each.code, each.sk) for each in letters_of(tenant)] == [(CRASHED, "a")]


def test_function_that_is_killed_by_a_fresh_record_gives_it_up_later(tenant: str, work: Work) -> None:
    work.failures["a"] = Killed()
    with pytest.raises(Killed):
        deliver(work.worker, stream_record(tenant, "a"))
    for _ in range(3):
        with pytest.raises(Killed):
            deliver(work.worker, stream_record(tenant, "a", age=LATE_SECONDS))
    assert deliver(work.worker, stream_record(tenant, "a", age=LATE_SECONDS)) == []
    assert [each.code for each in letters_of(tenant)] == [CRASHED]


def test_batch_is_halved_until_the_record_that_kills_is_alone(tenant: str, work: Work) -> None:
    """Records that were in a batch with one that kills the function are not blamed for it."""
    records = [stream_record(tenant, sk, number=number, age=LATE_SECONDS) for number, sk in enumerate("abc")]
    work.failures["b"] = Killed()
    for _ in range(2 * delivery_attempts.MAX_ATTEMPTS):
        with pytest.raises(Killed):
            deliver(work.worker, *records)
    assert [deliver(work.worker, each) for each in (records[0], records[2])] == [[], []]
    assert letters_of(tenant) == []


# The price of counting


def actions_of_delivery(work: Work, record: dict[str, Any]) -> list[str]:
    actions: list[str] = []
    with intercept_requests(lambda operation, _: actions.append(operation)):
        deliver(work.worker, record)
    return actions


def test_record_that_succeeds_costs_no_write(tenant: str, work: Work) -> None:
    assert actions_of_delivery(work, stream_record(tenant, "a")) == []


def test_late_record_that_succeeds_is_not_blamed(tenant: str, work: Work) -> None:
    record = stream_record(tenant, "a", age=LATE_SECONDS)
    for _ in range(2 * delivery_attempts.MAX_ATTEMPTS):
        assert actions_of_delivery(work, record) == ["UpdateItem", "UpdateItem"]
    assert len(work.done) == 2 * delivery_attempts.MAX_ATTEMPTS


# Order


def test_later_records_of_the_same_item_wait(tenant: str, work: Work) -> None:
    """The records of a partition are processed in order, and those of others go on."""
    work.failures["a1"] = Unavailable()
    records = [
        stream_record(f"{tenant}#a", "a1", number=1),
        stream_record(f"{tenant}#b", "b1", number=2),
        stream_record(f"{tenant}#a", "a2", number=3),
    ]
    assert deliver(work.worker, *records) == ["1", "3"]
    assert work.done == ["b1"]
    work.failures["a1"] = ValueError()
    assert [deliver(work.worker, *records) for _ in range(3)] == [["1", "3"], ["1", "3"], []]
    assert work.done[-1] == "a2"
    assert [each.sk for each in letters_of(tenant)] == ["a1"]


# Dead letters


def test_record_is_a_dead_letter_once(tenant: str, work: Work) -> None:
    work.failures["a"] = ValueError()
    for _ in range(6):  # delivered again with another record of its batch that waits
        deliver(work.worker, stream_record(tenant, "a"))
    lines = Path(config().dead_letters).read_text().splitlines()
    assert sum(tenant in line for line in lines) == 1


def test_concurrent_deliveries_of_a_record_make_one_letter(tenant: str, work: Work) -> None:
    work.failures["a"] = ValueError()
    ready = threading.Barrier(8)

    def run(_: int) -> None:
        ready.wait(CEILING_SECONDS)
        for _ in range(3):
            deliver(work.worker, stream_record(tenant, "a"))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(run, range(8)))
    assert [each.sk for each in letters_of(tenant)] == ["a"]


def test_record_waits_until_its_letter_is_stored(
    tenant: str, work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work.failures["a"] = ValueError()
    file = tmp_path / "missing" / dead_letters.FILE_NAME
    monkeypatch.setattr(config(), "dead_letters", str(file))
    for _ in range(5):
        assert deliver(work.worker, stream_record(tenant, "a")) == ["1"]
    file.parent.mkdir()
    assert deliver(work.worker, stream_record(tenant, "a")) == []
    assert [each.sk for each in dead_letters.read(file)] == ["a"]


def test_letter_tells_the_reason_and_no_content(tenant: str, work: Work, log: Path) -> None:
    work.failures["a"] = ValueError("the text of a document")
    for _ in range(3):
        deliver(work.worker, stream_record(tenant, "a"))
    [letter] = letters_of(tenant)
    assert letter.at.endswith("Z")
    [call, *_] = log_records(log, "called")
    assert asdict(letter) | {"at": ""} == {
        "id": f"{1:032}",
        "method": METHOD,
        "code": "INTERNAL_ERROR",
        "correlation_id": call["correlation_id"],
        "event": "INSERT",
        "pk": tenant,
        "sk": "a",
        "at": "",
    }
    [record] = log_records(log, "dead letter")
    assert record["letter"] == asdict(letter)
    assert "text of a document" not in json.dumps(record)


def test_damaged_lines_of_the_file_are_skipped(tmp_path: Path) -> None:
    file = tmp_path / dead_letters.FILE_NAME
    assert dead_letters.read(file) == []
    letter = dead_letters.DeadLetter("1", METHOD, CRASHED, "")
    file.write_text(f'{{"id": "0", "met\n{json.dumps(asdict(letter))}\n[]\n')
    assert dead_letters.read(file) == [letter]


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield the dead-letter queue of a stack, to which letters are sent."""
    import boto3

    with running_aws_stack("kho", {}) as url:
        client = boto3.Session("test", "test", region_name="us-east-1").client("sqs", endpoint_url=url)
        [queue_url] = client.list_queues()["QueueUrls"]
        for name, value in (ENVIRONMENT | {"AWS_ENDPOINT_URL_SQS": url}).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(config(), "dead_letters", queue_url)
        dead_letters._queue_service.cache_clear()
        yield client, queue_url
        dead_letters._queue_service.cache_clear()


def test_letters_of_a_stack_are_in_its_queue(tenant: str, work: Work, queue: Any) -> None:
    client, url = queue
    work.failures["a"] = ValueError()
    outcomes = [deliver(work.worker, stream_record(tenant, "a")) for _ in range(3)]
    assert outcomes == [["1"], ["1"], []]
    [message] = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    body = json.loads(message["Body"])
    assert (body["method"], body["code"], body["pk"]) == (METHOD, "INTERNAL_ERROR", tenant)
    client.delete_queue(QueueUrl=url)
    work.failures["b"] = ValueError()
    again = [deliver(work.worker, stream_record(tenant, "b", number=2)) for _ in range(4)]
    assert again == [["2"]] * 4, "a letter that is not stored is not lost"


# The end of a server


@pytest.fixture
def ending() -> Iterator[Callable[[], None]]:
    """Yield the function that ends the attempts of this process, which a test's process goes on after."""
    yield delivery_attempts.end_attempts
    delivery_attempts._ending.clear()


def test_end_of_the_server_is_no_attempt(tenant: str, ending: Callable[[], None]) -> None:
    """A record that is processed while its server ends, however often, is tried again."""
    record = stream_record(tenant, "a", age=LATE_SECONDS)

    def interrupted(_: StreamRecord) -> None:
        ending()
        raise RuntimeError("cannot schedule new futures after shutdown")

    worker = stream_worker(METHOD)(interrupted)
    for _ in range(2 * delivery_attempts.MAX_ATTEMPTS):
        assert deliver(worker, record) == ["1"]
        delivery_attempts._ending.clear()
    assert letters_of(tenant) == []


def test_attempt_that_the_end_of_the_server_cuts_off_is_withdrawn(tenant: str, ending: Callable[[], None]) -> None:
    record = stream_record(tenant, "a", age=LATE_SECONDS)

    def killed(_: StreamRecord) -> None:
        ending()
        raise Killed

    worker = stream_worker(METHOD)(killed)
    for _ in range(2 * delivery_attempts.MAX_ATTEMPTS):
        with pytest.raises(Killed):
            deliver(worker, record)
        delivery_attempts._ending.clear()
    assert letters_of(tenant) == []
