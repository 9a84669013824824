"""Event source mappings on one machine: streams delivered to functions, with retries and dead letters."""

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
_LIST_INTERVAL_SECONDS: Final = 5.0
_MAX_RECORDS: Final = 1000
_RETRY_SECONDS: Final = 1.0
_MAX_RETRY_SECONDS: Final = 5.0


class StreamReader(threading.Thread):
    """A thread that delivers one table's stream to one function and stores its position on disk."""

    def __init__(self, trigger: StreamTrigger, url: str, functions: Functions, folder: Path) -> None:
        super().__init__(name=f"stream-{trigger.function}", daemon=True)
        self._trigger = trigger
        self._functions = functions
        self._position_file = folder / f"stream-{trigger.function}.json"
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
            self._client.close()

    def _deliver_all(self) -> None:
        positions = self._load_positions()
        while not self._stopping.is_set():
            try:
                busy = self._advance(positions)
            except (BotoCoreError, ClientError, OSError) as error:
                logger.warning("stream", extra={"function": self._trigger.function, "failure": type(error).__name__})
                self._iterators.clear()
                self._next_listing_at = -math.inf
                self._stopping.wait(_RETRY_SECONDS)
            else:
                self._stopping.wait(0 if busy else _IDLE_SECONDS)

    def _advance(self, positions: dict[str, str]) -> bool:
        """Deliver the new records of every shard. Return whether there may be more."""
        if time.monotonic() >= self._next_listing_at:
            self._list_shards(positions)
        busy = False
        for shard in list(self._iterators):
            with self._dropping_on_error(shard):
                busy |= self._advance_shard(shard, positions)
        return busy

    def _list_shards(self, positions: dict[str, str]) -> None:
        """Open an iterator for each new shard, at its stored position."""
        self._next_listing_at = time.monotonic() + _LIST_INTERVAL_SECONDS
        for stream in self._client.list_streams(TableName=self._trigger.table)["Streams"]:
            arn = stream["StreamArn"]
            for each in self._client.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
                shard = f"{arn}/{each['ShardId']}"
                if shard not in self._iterators:
                    last = positions.get(shard)
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

    def _advance_shard(self, shard: str, positions: dict[str, str]) -> bool:
        response = self._client.get_records(ShardIterator=self._iterators[shard], Limit=_MAX_RECORDS)
        records = response["Records"]
        filters = self._trigger.filters or [{}]
        matching = [record for record in records if any(matches_filter(pattern, record) for pattern in filters)]
        for first in range(0, len(matching), self._trigger.batch_size):
            batch = matching[first : first + self._trigger.batch_size]
            if self._stopping.is_set() or not self._deliver(batch):
                return True
            self._store_position(positions, shard, batch[-1])
        if records:
            self._store_position(positions, shard, records[-1])
        if "NextShardIterator" in response:
            self._iterators[shard] = response["NextShardIterator"]
        else:
            del self._iterators[shard]
        return bool(matching) or len(records) == _MAX_RECORDS

    def _load_positions(self) -> dict[str, str]:
        """Return the stored positions. If they cannot be read, start over: workers are idempotent."""
        try:
            positions: dict[str, str] = json.loads(self._position_file.read_text())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            logger.warning("stream", extra={"function": self._trigger.function, "failure": type(error).__name__})
            return {}
        return positions

    def _store_position(self, positions: dict[str, str], shard: str, record: dict[str, Any]) -> None:
        positions[shard] = record["dynamodb"]["SequenceNumber"]
        new = self._position_file.with_suffix(".new")
        new.write_text(json.dumps(positions))
        new.replace(self._position_file)

    def _deliver(self, batch: list[dict[str, Any]]) -> bool:
        """Invoke the function until each record is processed or given up. Return False if stopped before."""
        pause = _RETRY_SECONDS
        started, retries = time.monotonic(), 0
        while True:
            failed = self._invoke(batch)
            if failed is None and len(batch) > 1 and self._trigger.bisects:
                half = len(batch) // 2
                return self._deliver(batch[:half]) and self._deliver(batch[half:])
            if failed == set():
                return True
            # Like Lambda, deliver every record from the first failure on again.
            while failed and batch[0]["dynamodb"]["SequenceNumber"] not in failed:
                batch = batch[1:]
            if retries >= self._trigger.retries or time.monotonic() - started > self._trigger.record_age:
                logger.error("dead letters", extra={"function": self._trigger.function, "records": len(batch)})
                return True
            if self._stopping.wait(pause):
                return False
            retries += 1
            pause = min(2 * pause, _MAX_RETRY_SECONDS)

    def _invoke(self, batch: list[dict[str, Any]]) -> set[str] | None:
        """Invoke the function. Return the failed records' sequence numbers, or None if it crashed or timed out."""
        payload = json.dumps({"Records": batch}).encode()
        try:
            result = json.loads(self._functions(self._trigger.function, payload))
        except (FunctionCrashed, TimeoutError):
            return None
        return {failure["itemIdentifier"] for failure in result["batchItemFailures"]}


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
