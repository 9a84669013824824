"""A table's stream on one machine: each record arrives, failures are retried, a restart resumes."""

from __future__ import annotations

import json
import shutil
import threading
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from infra.local import streams
from infra.local.streams import StreamReader
from infra.local.template import StreamTrigger
from shared.aws.dead_letters import EXPIRED
from shared.aws.dynamodb import Table, Write
from shared.platform.config import config
from shared.rpc.invocation import FunctionCrashed
from tests.helpers.stream_deliveries import letters_of
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from pathlib import Path


class Receiver:
    """A receiver of batches that records them and fails as scripted."""

    def __init__(self, *failures: str) -> None:
        self.failures = list(failures)
        self.batches: list[list[str]] = []
        self.arrived = threading.Semaphore(0)

    @staticmethod
    def names(payload: bytes) -> list[str]:
        return [record["dynamodb"]["Keys"]["sk"]["S"] for record in json.loads(payload)["Records"]]

    def __call__(self, function: str, payload: bytes) -> bytes:
        records = json.loads(payload)["Records"]
        self.batches.append(self.names(payload))
        failure = self.failures.pop(0) if self.failures else ""
        if failure == "crash":
            raise FunctionCrashed(function)
        failed = [each for each in records if each["dynamodb"]["Keys"]["sk"]["S"] == failure]
        self.arrived.release()
        return json.dumps(
            {"batchItemFailures": [{"itemIdentifier": each["dynamodb"]["SequenceNumber"]} for each in failed]}
        ).encode()


def trigger(tenant: str, **limits: Any) -> StreamTrigger:
    filters: list[dict[str, Any]] = [{"dynamodb": {"Keys": {"pk": {"S": [{"prefix": tenant}]}}}}]
    return StreamTrigger(config().memory_table, "receiver", **{"batch_size": 3, "filters": filters, **limits})


def put(tenant: str, *names: str) -> None:
    for name in names:
        Table(config().memory_table).write(Write("Put", {"pk": tenant, "sk": name}))


class Holding(Receiver):
    """A receiver that processes a record when the test releases it."""

    def __init__(self) -> None:
        super().__init__()
        self.released: defaultdict[str, threading.Event] = defaultdict(threading.Event)

    def __call__(self, function: str, payload: bytes) -> bytes:
        answer = super().__call__(function, payload)
        assert self.released[self.names(payload)[0]].wait(CEILING_SECONDS)
        return answer


def read(tenant: str, store: str, folder: Path, receiver: Receiver, answers: int, **limits: Any) -> list[list[str]]:
    """Return the batches that arrive until `answers` of them were answered."""
    reader = StreamReader(trigger(tenant, **limits), store, receiver, folder)  # type: ignore[arg-type]
    reader.start()
    for _ in range(answers):
        assert receiver.arrived.acquire(timeout=CEILING_SECONDS)
    reader.stop()
    reader.join(CEILING_SECONDS)
    assert not reader.is_alive()
    return receiver.batches


def test_records_arrive_in_order_and_in_batches(tenant: str, store: str, tmp_path: Path) -> None:
    put(tenant, "a", "b", "c", "d")
    assert read(tenant, store, tmp_path, Receiver(), answers=2) == [["a", "b", "c"], ["d"]]


def test_records_from_the_first_failure_on_are_retried(tenant: str, store: str, tmp_path: Path) -> None:
    put(tenant, "a", "b", "c")
    assert read(tenant, store, tmp_path, Receiver("b"), answers=2) == [["a", "b", "c"], ["b", "c"]]


def test_crash_retries_the_batch(tenant: str, store: str, tmp_path: Path) -> None:
    put(tenant, "a")
    assert read(tenant, store, tmp_path, Receiver("crash"), answers=1) == [["a"], ["a"]]


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry records after a short pause."""
    monkeypatch.setattr(streams, "_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(streams, "_MAX_RETRY_SECONDS", 0.02)


@pytest.mark.usefixtures("hasty")
def test_failures_are_retried_until_success(tenant: str, store: str, tmp_path: Path) -> None:
    put(tenant, "a", "b")
    batches = read(tenant, store, tmp_path, Receiver(*["a"] * 40), answers=41)
    assert batches == [["a", "b"]] * 41


@pytest.mark.usefixtures("hasty")
def test_record_that_is_too_old_is_a_dead_letter(tenant: str, store: str, tmp_path: Path) -> None:
    """A record that was retried for its whole age is given up, with its keys and the reason."""
    put(tenant, "a")
    assert read(tenant, store, tmp_path, Receiver("a"), answers=1, record_age=0.0) == [["a"]]
    [letter] = letters_of(tenant)
    assert (letter.method, letter.code, letter.event, letter.sk) == ("receiver", EXPIRED, "INSERT", "a")
    put(tenant, "b")
    assert read(tenant, store, tmp_path, Receiver(), answers=1, record_age=0.0) == [["b"]]


@pytest.mark.usefixtures("hasty")
def test_record_that_is_too_old_waits_until_its_letter_is_stored(
    tenant: str, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config(), "dead_letters", str(tmp_path / "missing" / "letters"))
    put(tenant, "a")
    assert read(tenant, store, tmp_path, Receiver("a", "a"), answers=3, record_age=0.0) == [["a"]] * 3


@pytest.mark.usefixtures("hasty")
def test_crashing_batch_is_bisected(tenant: str, store: str, tmp_path: Path) -> None:
    put(tenant, "a", "b", "c")
    batches = read(tenant, store, tmp_path, Receiver("crash"), answers=2, bisects=True)
    assert batches == [["a", "b", "c"], ["a"], ["b", "c"]]


@pytest.mark.parametrize("content", ["", "{", "[]x"])
def test_unreadable_checkpoint_restarts_the_stream(tenant: str, store: str, tmp_path: Path, content: str) -> None:
    put(tenant, "a")
    (tmp_path / "stream-receiver.json").write_text(content)
    assert read(tenant, store, tmp_path, Receiver(), answers=1) == [["a"]]


def test_restart_resumes_at_the_checkpoint(tenant: str, store: str, tmp_path: Path) -> None:
    put(tenant, "a")
    assert read(tenant, store, tmp_path, Receiver(), answers=1) == [["a"]]
    put(tenant, "b")
    assert read(tenant, store, tmp_path, Receiver(), answers=1) == [["b"]]


def test_partition_keys_do_not_wait_for_each_other(tenant: str, store: str, tmp_path: Path) -> None:
    receiver = Holding()
    reader = StreamReader(trigger(tenant, batch_size=1, parallelization=2), store, receiver, tmp_path)  # type: ignore[arg-type]
    reader.start()
    put(f"{tenant}-a", "a1", "a2")
    put(f"{tenant}-b", "b1")
    until(lambda: sorted(receiver.batches) == [["a1"], ["b1"]])
    receiver.released["b1"].set()
    put(f"{tenant}-c", "c1")
    until(lambda: receiver.batches[2:] == [["c1"]])
    receiver.released["a1"].set()
    until(lambda: receiver.batches[3:] == [["a2"]])
    reader.stop()
    receiver.released["a2"].set()
    receiver.released["c1"].set()
    reader.join(CEILING_SECONDS)
    assert not reader.is_alive()


def test_restart_delivers_what_was_not_finished(tenant: str, store: str, tmp_path: Path) -> None:
    limits = {"batch_size": 1, "parallelization": 2}
    receiver = Holding()
    reader = StreamReader(trigger(tenant, **limits), store, receiver, tmp_path)  # type: ignore[arg-type]
    reader.start()
    put(f"{tenant}-b", "b1")
    put(f"{tenant}-a", "a1", "a2")
    put(f"{tenant}-b", "b2")
    receiver.released["b1"].set()
    receiver.released["b2"].set()
    until(lambda: sorted(receiver.batches) == [["a1"], ["b1"], ["b2"]])
    reader.stop()
    receiver.released["a1"].set()
    reader.join(CEILING_SECONDS)
    assert not reader.is_alive()
    # b2 was finished, but not what precedes it in the stream.
    assert sorted(read(tenant, store, tmp_path, Receiver(), answers=2, **limits)) == [["a2"], ["b2"]]


def test_crash_loses_no_record_before_a_finished_one(tenant: str, store: str, tmp_path: Path) -> None:
    """The stored position never passes an unfinished record."""
    limits = {"batch_size": 1, "parallelization": 2}
    receiver = Holding()
    running, crashed = tmp_path / "running", tmp_path / "crashed"
    running.mkdir()
    reader = StreamReader(trigger(tenant, **limits), store, receiver, running)  # type: ignore[arg-type]
    reader.start()
    put(f"{tenant}-a", "a1")
    put(f"{tenant}-b", "b1", "b2")
    receiver.released["b1"].set()
    until(lambda: ["b2"] in receiver.batches)  # so b1 is finished
    shutil.copytree(running, crashed)
    reader.stop()
    for name in ("a1", "b2"):
        receiver.released[name].set()
    reader.join(CEILING_SECONDS)
    assert not reader.is_alive()
    assert sorted(read(tenant, store, crashed, Receiver(), answers=3, **limits)) == [["a1"], ["b1"], ["b2"]]


def test_partition_keys_take_turns() -> None:
    begun, delivered = threading.Event(), list[str]()

    def deliver(_shard: str, record: dict[str, Any]) -> bool:
        assert begun.wait(CEILING_SECONDS)
        delivered.append(record["name"])
        return True

    lanes = streams._Lanes(deliver, 1)
    for name in ("a1", "a2", "a3", "b1", "c1", "b2"):
        lanes.add("shard", {"name": name, "dynamodb": {"Keys": {"pk": {"S": name[0]}}}})
    begun.set()
    lanes.join()
    assert delivered == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_failing_shard_does_not_block_others(tenant: str, store: str, tmp_path: Path) -> None:
    class OneMore:
        def __init__(self, client: Any) -> None:
            self._client = client

        def __getattr__(self, name: str) -> Any:
            return getattr(self._client, name)

        def describe_stream(self, **asked: Any) -> Any:
            described = self._client.describe_stream(**asked)
            described["StreamDescription"]["Shards"].insert(0, {"ShardId": "trimmed"})
            return described

        def get_shard_iterator(self, **asked: Any) -> Any:
            if asked["ShardId"] == "trimmed":
                raise ClientError({"Error": {"Code": "TrimmedDataAccessException"}}, "GetShardIterator")
            return self._client.get_shard_iterator(**asked)

    receiver = Receiver()
    reader = StreamReader(trigger(tenant), store, receiver, tmp_path)  # type: ignore[arg-type]
    reader._client = OneMore(reader._client)
    reader.start()
    put(tenant, "a", "b")
    arrived: list[str] = []
    while len(arrived) < 2:
        assert receiver.arrived.acquire(timeout=CEILING_SECONDS)
        arrived = [name for batch in receiver.batches for name in batch]
    reader.stop()
    reader.join(CEILING_SECONDS)
    assert arrived == ["a", "b"]
