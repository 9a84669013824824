"""Table streams on one machine: what changes is brought to the functions that the template names."""

from __future__ import annotations

import json
import math
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from shared.aws.dynamodb import DynamoDBStreamsHttpClient
from shared.rpc.invoke import FunctionCrashed
from shared.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from infra.local.functions import Functions
    from infra.local.template import StreamTrigger

_IDLE_SECONDS: Final = 0.25
_LISTED_EVERY_SECONDS: Final = 5.0
_RECORDS: Final = 1000
_RETRY_SECONDS: Final = 1.0
_LONGEST_RETRY_SECONDS: Final = 5.0


class StreamReader(threading.Thread):
    """Reads one table's stream for one function, and remembers on disk how far it is."""

    def __init__(self, trigger: StreamTrigger, url: str, functions: Functions, folder: Path) -> None:
        super().__init__(name=f"stream-{trigger.function}", daemon=True)
        self._trigger = trigger
        self._functions = functions
        self._position_file = folder / f"stream-{trigger.function}.json"
        self._stopping = threading.Event()
        self._iterators: dict[str, str] = {}
        self._listed_again_at = -math.inf
        # Read four times a second, idle or not: by boto3 that took three times as much of the processor.
        self._client: Any = DynamoDBStreamsHttpClient(url)

    def stop(self) -> None:
        """Stop before the next batch."""
        self._stopping.set()

    def run(self) -> None:
        """Bring records until stopped; a store that does not answer is asked again."""
        try:
            self._bring_all()
        finally:
            self._client.close()

    def _bring_all(self) -> None:
        positions = self._remembered()
        while not self._stopping.is_set():
            try:
                busy = self._advance(positions)
            except (BotoCoreError, ClientError, OSError) as error:
                logger.warning("stream", extra={"function": self._trigger.function, "failure": type(error).__name__})
                self._iterators.clear()
                self._listed_again_at = -math.inf
                self._stopping.wait(_RETRY_SECONDS)
            else:
                self._stopping.wait(0 if busy else _IDLE_SECONDS)

    def _advance(self, positions: dict[str, str]) -> bool:
        """Bring what is new in every shard; whether there may be more."""
        if time.monotonic() >= self._listed_again_at:
            self._list(positions)
        busy = False
        for shard in list(self._iterators):
            with self._losing(shard):
                busy |= self._advance_shard(shard, positions)
        return busy

    def _list(self, positions: dict[str, str]) -> None:
        """Find the shards that there are, and in each where to go on."""
        self._listed_again_at = time.monotonic() + _LISTED_EVERY_SECONDS
        for stream in self._client.list_streams(TableName=self._trigger.table)["Streams"]:
            arn = stream["StreamArn"]
            for each in self._client.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
                shard = f"{arn}/{each['ShardId']}"
                if shard not in self._iterators:
                    last = positions.get(shard)
                    start = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": last} if last else {}
                    asked = {"StreamArn": arn, "ShardId": each["ShardId"], "ShardIteratorType": "TRIM_HORIZON"} | start
                    with self._losing(shard):
                        self._iterators[shard] = self._client.get_shard_iterator(**asked)["ShardIterator"]

    @contextmanager
    def _losing(self, shard: str) -> Iterator[None]:
        """Let go of a shard that is refused, for a while: others go on."""
        try:
            yield
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            logger.warning("stream", extra={"function": self._trigger.function, "failure": code})
            self._iterators.pop(shard, None)
            self._listed_again_at = time.monotonic() + _RETRY_SECONDS

    def _advance_shard(self, shard: str, positions: dict[str, str]) -> bool:
        answer = self._client.get_records(ShardIterator=self._iterators[shard], Limit=_RECORDS)
        records = answer["Records"]
        wanted = [record for record in records if self._passes(record)]
        for first in range(0, len(wanted), self._trigger.batch_size):
            batch = wanted[first : first + self._trigger.batch_size]
            if self._stopping.is_set() or not self._bring(batch):
                return True
            self._remember(positions, shard, batch[-1])
        if records:
            self._remember(positions, shard, records[-1])
        if "NextShardIterator" in answer:
            self._iterators[shard] = answer["NextShardIterator"]
        else:
            del self._iterators[shard]
        return bool(wanted) or len(records) == _RECORDS

    def _remembered(self) -> dict[str, str]:
        """How far it was; from the beginning where that cannot be read, as workers take a record twice."""
        try:
            positions: dict[str, str] = json.loads(self._position_file.read_text())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            logger.warning("stream", extra={"function": self._trigger.function, "failure": type(error).__name__})
            return {}
        return positions

    def _remember(self, positions: dict[str, str], shard: str, record: dict[str, Any]) -> None:
        positions[shard] = record["dynamodb"]["SequenceNumber"]
        remembered = self._position_file.with_suffix(".new")
        remembered.write_text(json.dumps(positions))
        remembered.replace(self._position_file)

    def _bring(self, batch: list[dict[str, Any]]) -> bool:
        """Invoke the function until each record is done or given up; False where told to stop before."""
        pause = _RETRY_SECONDS
        started, retries = time.monotonic(), 0
        while True:
            failed = self._failed(batch)
            if failed is None and len(batch) > 1 and self._trigger.bisects:
                half = len(batch) // 2
                return self._bring(batch[:half]) and self._bring(batch[half:])
            if failed == set():
                return True
            # As Lambda does: from the first failure on, everything is delivered again.
            while failed and batch[0]["dynamodb"]["SequenceNumber"] not in failed:
                batch = batch[1:]
            if retries >= self._trigger.retries or time.monotonic() - started > self._trigger.record_age:
                logger.error("dead letters", extra={"function": self._trigger.function, "records": len(batch)})
                return True
            if self._stopping.wait(pause):
                return False
            retries += 1
            pause = min(2 * pause, _LONGEST_RETRY_SECONDS)

    def _failed(self, batch: list[dict[str, Any]]) -> set[str] | None:
        """Which records the function could not deal with, None where it ended before it said."""
        payload = json.dumps({"Records": batch}).encode()
        try:
            answer = json.loads(self._functions(self._trigger.function, payload))
        except (FunctionCrashed, TimeoutError):
            return None
        return {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}

    def _passes(self, record: dict[str, Any]) -> bool:
        filters = self._trigger.filters
        return not filters or any(matches_filter(pattern, record) for pattern in filters)


def matches_filter(pattern: dict[str, Any], value: Any) -> bool:
    """Whether a record has what an event filter asks for: exact values, prefixes, existence."""
    if not isinstance(value, dict):
        return False
    for name, wanted in pattern.items():
        if isinstance(wanted, dict):
            if not matches_filter(wanted, value.get(name)):
                return False
        elif not any(_meets(rule, value, name) for rule in wanted):
            return False
    return True


def _meets(rule: Any, value: dict[str, Any], name: str) -> bool:
    match rule:
        case {"prefix": prefix}:
            return isinstance(value.get(name), str) and value[name].startswith(prefix)
        case {"exists": expected}:
            return (name in value) is expected
        case dict():
            raise ValueError(f"one machine does not know the event filter {rule}")
    return name in value and value[name] == rule
