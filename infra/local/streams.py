"""Event source mappings on one machine: streams delivered to functions, with retries and dead letters."""

from __future__ import annotations

import itertools
import json
import math
import threading
import time
from collections import defaultdict, deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from shared.aws import dead_letters
from shared.aws.dead_letters import EXPIRED, DeadLetter
from shared.aws.dynamodb_client import DynamoDBStreamsHttpClient
from shared.platform.telemetry import logger
from shared.rpc.errors import Unavailable
from shared.rpc.invocation import FunctionCrashed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path

    from infra.local.functions import Functions
    from infra.local.template import StreamTrigger

_IDLE_SECONDS: Final = 0.25
_LIST_INTERVAL_SECONDS: Final = 5.0
_MAX_RECORDS: Final = 1000
_RETRY_SECONDS: Final = 1.0
_MAX_RETRY_SECONDS: Final = 5.0


class _Positions:
    """The position in each shard up to which records are read, and on disk, up to which all are finished."""

    def __init__(self, folder: Path, function: str) -> None:
        self._file = _positions_file(folder, function)
        self._stored = _load_positions(self._file)
        self._read = dict(self._stored)
        self._is_finished: defaultdict[str, dict[str, bool]] = defaultdict(dict)
        """By shard, the sequence numbers after the stored position, in order."""
        self._lock = threading.Lock()

    def last_read(self, shard: str) -> str | None:
        """Return the number of the last record that was read, if any."""
        return self._read.get(shard)

    def unfinished(self, shard: str) -> int:
        """Return the number of records from the first unfinished one to the last one that was read."""
        return len(self._is_finished[shard])

    def add(self, shard: str, matching: Iterable[str], last: str) -> None:
        """Add records that were read: those to deliver, and the last one, which may not be one of them."""
        with self._lock:
            self._is_finished[shard] |= dict.fromkeys(matching, False)
            self._is_finished[shard].setdefault(last, True)
            self._read[shard] = last
            self._store(shard)

    def finish(self, shard: str, numbers: Iterable[str]) -> None:
        """Record that these records were processed or given up."""
        with self._lock:
            self._is_finished[shard] |= dict.fromkeys(numbers, True)
            self._store(shard)

    def _store(self, shard: str) -> None:
        """Store the number before the first unfinished record."""
        numbers = self._is_finished[shard]
        finished = [number for number, _ in itertools.takewhile(lambda each: each[1], numbers.items())]
        if not finished:
            return
        for number in finished:
            del numbers[number]
        self._stored[shard] = finished[-1]
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(self._stored))
        new.replace(self._file)


def _positions_file(folder: Path, function: str) -> Path:
    return folder / f"stream-{function}.json"


def _load_positions(file: Path) -> dict[str, str]:
    """Return the stored positions. If they cannot be read, start over: workers are idempotent."""
    try:
        positions: dict[str, str] = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        logger.warning("stream", extra={"file": file.name, "failure": type(error).__name__})
        return {}
    return positions


def finished_positions(folder: Path) -> dict[str, int]:
    """Return the number of each shard up to which all readers of this data folder have finished its records."""
    positions: dict[str, int] = {}
    for file in folder.glob(_positions_file(folder, "*").name):
        for shard, number in _load_positions(file).items():
            shard_id = shard.rpartition("/")[2]
            positions[shard_id] = min(int(number), positions.get(shard_id, int(number)))
    return positions


def forget_former_readers(folder: Path, functions: Collection[str]) -> None:
    """Delete the positions of functions that no longer exist, which would keep records for ever."""
    current = {_positions_file(folder, function) for function in functions}
    for file in folder.glob(_positions_file(folder, "*").name):
        if file not in current:
            file.unlink()


class _Lanes:
    """Records by shard and partition key. Those of one key are delivered in order, those of several at the same time.

    `deliver` takes a shard and a record, and returns False if it was stopped before. At most `limit` threads call it;
    if there are more keys, they take turns.
    """

    def __init__(self, deliver: Callable[[str, dict[str, Any]], bool], limit: int) -> None:
        self._deliver = deliver
        self._limit = limit
        self._waiting: dict[tuple[str, str], deque[dict[str, Any]]] = {}
        self._active: dict[tuple[str, str], deque[dict[str, Any]]] = {}
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    def add(self, shard: str, record: dict[str, Any]) -> None:
        """Add a record to the lane of its partition key."""
        key = shard, record["dynamodb"]["Keys"]["pk"]["S"]
        with self._lock:
            lane = self._active.get(key)
            if lane is None:
                lane = self._waiting.setdefault(key, deque())
            lane.append(record)
            if self._waiting and len(self._active) < self._limit:
                thread = threading.Thread(target=self._run, args=self._take(), name="stream-lane", daemon=True)
                self._threads = [each for each in self._threads if each.is_alive()] + [thread]
                thread.start()

    def join(self) -> None:
        """Wait for the records that are being delivered."""
        for thread in self._threads:
            thread.join()

    def _take(self) -> tuple[tuple[str, str], deque[dict[str, Any]]]:
        """Make the lane active that has waited longest."""
        key = next(iter(self._waiting))
        self._active[key] = self._waiting.pop(key)
        return key, self._active[key]

    def _run(self, key: tuple[str, str], lane: deque[dict[str, Any]]) -> None:
        while self._deliver(key[0], lane[0]):
            with self._lock:
                del self._active[key]
                lane.popleft()
                if lane:
                    self._waiting[key] = lane
                if not self._waiting:
                    return
                key, lane = self._take()


class StreamReader(threading.Thread):
    """A thread that delivers one table's stream to one function and stores its position on disk."""

    def __init__(self, trigger: StreamTrigger, url: str, functions: Functions, folder: Path) -> None:
        super().__init__(name=f"stream-{trigger.function}", daemon=True)
        self._trigger = trigger
        self._functions = functions
        self._positions = _Positions(folder, trigger.function)
        # A batch may hold records of several keys, so only functions that take single records have lanes.
        has_lanes = trigger.parallelization > 1 and trigger.batch_size == 1
        self._lanes = _Lanes(self._deliver_one, trigger.parallelization) if has_lanes else None
        self._stopping = threading.Event()
        self._iterators: dict[str, str] = {}
        self._next_listing_at = -math.inf
        # The stream is polled four times a second. With boto3 that took three times as much CPU time.
        self._client: Any = DynamoDBStreamsHttpClient(url)

    def stop(self) -> None:
        """Stop before the next batch."""
        self._stopping.set()

    def run(self) -> None:
        """Deliver records until stopped. Retry if the store does not answer."""
        try:
            self._deliver_all()
        finally:
            if self._lanes:
                self._lanes.join()
            self._client.close()

    def _deliver_all(self) -> None:
        while not self._stopping.is_set():
            try:
                busy = self._advance()
            except (BotoCoreError, ClientError, OSError) as error:
                logger.warning("stream", extra={"function": self._trigger.function, "failure": type(error).__name__})
                self._iterators.clear()
                self._next_listing_at = -math.inf
                self._stopping.wait(_RETRY_SECONDS)
            else:
                self._stopping.wait(0 if busy else _IDLE_SECONDS)

    def _advance(self) -> bool:
        """Deliver the new records of every shard. Return whether there may be more."""
        if time.monotonic() >= self._next_listing_at:
            self._list_shards()
        busy = False
        for shard in list(self._iterators):
            with self._dropping_on_error(shard):
                busy |= self._advance_shard(shard)
        return busy

    def _list_shards(self) -> None:
        """Open an iterator for each new shard, at its position."""
        self._next_listing_at = time.monotonic() + _LIST_INTERVAL_SECONDS
        for stream in self._client.list_streams(TableName=self._trigger.table)["Streams"]:
            arn = stream["StreamArn"]
            for each in self._client.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
                shard = f"{arn}/{each['ShardId']}"
                if shard not in self._iterators:
                    last = self._positions.last_read(shard)
                    start = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": last} if last else {}
                    request = {"StreamArn": arn, "ShardId": each["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
                    with self._dropping_on_error(shard):
                        iterator = self._client.get_shard_iterator(**request | start)
                        self._iterators[shard] = iterator["ShardIterator"]

    @contextmanager
    def _dropping_on_error(self, shard: str) -> Iterator[None]:
        """Drop the shard until the next listing if the store refuses it. Other shards continue."""
        try:
            yield
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            logger.warning("stream", extra={"function": self._trigger.function, "failure": code})
            self._iterators.pop(shard, None)
            self._next_listing_at = time.monotonic() + _RETRY_SECONDS

    def _advance_shard(self, shard: str) -> bool:
        if self._positions.unfinished(shard) >= _MAX_RECORDS:
            return False
        response = self._client.get_records(ShardIterator=self._iterators[shard], Limit=_MAX_RECORDS)
        records = response["Records"]
        filters = self._trigger.filters or [{}]
        matching = [record for record in records if any(matches_filter(pattern, record) for pattern in filters)]
        if records:
            self._positions.add(shard, map(_number, matching), _number(records[-1]))
        for first in range(0, len(matching), self._trigger.batch_size):
            batch = matching[first : first + self._trigger.batch_size]
            if self._lanes:
                self._lanes.add(shard, batch[0])
            elif not self._deliver_batch(shard, batch):
                return True
        if "NextShardIterator" in response:
            self._iterators[shard] = response["NextShardIterator"]
        else:
            del self._iterators[shard]
        return bool(matching) or len(records) == _MAX_RECORDS

    def _deliver_one(self, shard: str, record: dict[str, Any]) -> bool:
        return self._deliver_batch(shard, [record])

    def _deliver_batch(self, shard: str, batch: list[dict[str, Any]]) -> bool:
        """Deliver a batch and finish it. Return False if stopped before."""
        if self._stopping.is_set() or not self._deliver(batch):
            return False
        self._positions.finish(shard, map(_number, batch))
        return True

    def _deliver(self, batch: list[dict[str, Any]]) -> bool:
        """Invoke the function until each record is processed or too old. Return False if stopped before."""
        pause = _RETRY_SECONDS
        started = time.monotonic()
        while True:
            failed = self._invoke(batch)
            if failed is None and len(batch) > 1 and self._trigger.bisects:
                half = len(batch) // 2
                return self._deliver(batch[:half]) and self._deliver(batch[half:])
            if failed == set():
                return True
            # Like Lambda, deliver every record from the first failure on again.
            while failed and _number(batch[0]) not in failed:
                batch = batch[1:]
            if time.monotonic() - started > self._trigger.record_age and self._give_up(batch):
                return True
            if self._stopping.wait(pause):
                return False
            pause = min(2 * pause, _MAX_RETRY_SECONDS)

    def _give_up(self, batch: list[dict[str, Any]]) -> bool:
        """Send records that are too old to the dead letters. Return False if that fails."""
        try:
            for record in batch:
                keys = {name: record["dynamodb"]["Keys"][name]["S"] for name in ("pk", "sk")}
                method = self._trigger.function.replace("-", "/", 1)
                dead_letters.send(DeadLetter(record["eventID"], method, EXPIRED, "", record["eventName"], **keys))
        except Unavailable:
            return False
        return True

    def _invoke(self, batch: list[dict[str, Any]]) -> set[str] | None:
        """Invoke the function. Return the failed records' sequence numbers, or None if it crashed or timed out."""
        payload = json.dumps({"Records": batch}).encode()
        try:
            result = json.loads(self._functions(self._trigger.function, payload))
        except (FunctionCrashed, TimeoutError):
            return None
        return {failure["itemIdentifier"] for failure in result["batchItemFailures"]}


def _number(record: dict[str, Any]) -> str:
    number: str = record["dynamodb"]["SequenceNumber"]
    return number


def matches_filter(pattern: dict[str, Any], value: Any) -> bool:
    """Return whether a record matches an event filter of exact values, prefixes and existence."""
    if not isinstance(value, dict):
        return False
    for name, rules in pattern.items():
        if isinstance(rules, dict):
            if not matches_filter(rules, value.get(name)):
                return False
        elif not any(_matches_rule(rule, value, name) for rule in rules):
            return False
    return True


def _matches_rule(rule: Any, value: dict[str, Any], name: str) -> bool:
    match rule:
        case {"prefix": prefix}:
            return isinstance(value.get(name), str) and value[name].startswith(prefix)
        case {"exists": expected}:
            return (name in value) is expected
        case dict():
            raise ValueError(f"the local server does not support the event filter {rule}")
    return name in value and value[name] == rule
