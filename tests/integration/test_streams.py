"""A table's stream on one machine: each record arrives, failures come again, a restart goes on where it was."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.streams import StreamReader
from infra.local.template import StreamTrigger
from shared.config import config
from shared.dynamodb import Table, Write
from shared.rpc.invoke import FunctionCrashed

if TYPE_CHECKING:
    from pathlib import Path


class Receiver:
    """Stands where the functions are: notes what it is sent, and fails as it is told to."""

    def __init__(self, *failures: str) -> None:
        self.failures = list(failures)
        self.batches: list[list[str]] = []
        self.arrived = threading.Semaphore(0)

    def __call__(self, function: str, payload: bytes) -> bytes:
        records = json.loads(payload)["Records"]
        self.batches.append([record["dynamodb"]["Keys"]["sk"]["S"] for record in records])
        failure = self.failures.pop(0) if self.failures else ""
        if failure == "crash":
            raise FunctionCrashed(function)
        failed = [each for each in records if each["dynamodb"]["Keys"]["sk"]["S"] == failure]
        self.arrived.release()
        return json.dumps(
            {"batchItemFailures": [{"itemIdentifier": each["dynamodb"]["SequenceNumber"]} for each in failed]}
        ).encode()


def trigger(tenant: str) -> StreamTrigger:
    filters: list[dict[str, Any]] = [{"dynamodb": {"Keys": {"pk": {"S": [tenant]}}}}]
    return StreamTrigger(config().memory_table, "receiver", batch_size=3, filters=filters)


def put(tenant: str, *names: str) -> None:
    for name in names:
        Table(config().memory_table).write(Write("Put", {"pk": tenant, "sk": name}))


def read(tenant: str, store: str, folder: Path, receiver: Receiver, answers: int) -> list[list[str]]:
    """What arrives until `answers` batches were answered."""
    reader = StreamReader(trigger(tenant), store, receiver, folder)  # type: ignore[arg-type]
    reader.start()
    for _ in range(answers):
        assert receiver.arrived.acquire(timeout=20)
    reader.stop()
    reader.join(10)
    assert not reader.is_alive()
    return receiver.batches


def test_records_arrive_in_order_and_in_batches(tenant: str, store: str, tmp_path: Path) -> None:
    put(tenant, "a", "b", "c", "d")
    assert read(tenant, store, tmp_path, Receiver(), answers=2) == [["a", "b", "c"], ["d"]]


def test_from_the_first_failure_on_everything_comes_again(tenant: str, store: str, tmp_path: Path) -> None:
    put(tenant, "a", "b", "c")
    assert read(tenant, store, tmp_path, Receiver("b"), answers=2) == [["a", "b", "c"], ["b", "c"]]


def test_a_crash_brings_the_batch_again(tenant: str, store: str, tmp_path: Path) -> None:
    put(tenant, "a")
    assert read(tenant, store, tmp_path, Receiver("crash"), answers=1) == [["a"], ["a"]]


@pytest.mark.parametrize("content", ["", "{", "[]x"])
def test_a_position_that_cannot_be_read_begins_anew(tenant: str, store: str, tmp_path: Path, content: str) -> None:
    put(tenant, "a")
    (tmp_path / "stream-receiver.json").write_text(content)
    assert read(tenant, store, tmp_path, Receiver(), answers=1) == [["a"]]


def test_a_restart_goes_on_where_it_was(tenant: str, store: str, tmp_path: Path) -> None:
    put(tenant, "a")
    assert read(tenant, store, tmp_path, Receiver(), answers=1) == [["a"]]
    put(tenant, "b")
    assert read(tenant, store, tmp_path, Receiver(), answers=1) == [["b"]]
