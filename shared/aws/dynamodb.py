"""DynamoDB tables with plain Python values; no other module calls DynamoDB.

Reads are strongly consistent. A condition that does not hold raises `ConditionFailed`, which the caller interprets.
Failures of DynamoDB raise `Unavailable`. `optimistic_retry` is the retry loop of
conditional writes (optimistic locking), with exponential backoff and jitter.
"""

from __future__ import annotations

import math
import random
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from botocore.exceptions import BotoCoreError, ClientError

from shared.aws.attribute_values import marshal, unmarshal
from shared.aws.dynamodb_client import DynamoDBHttpClient
from shared.platform.runtime import runtime
from shared.platform.telemetry import logger
from shared.rpc.errors import Unavailable, disk_full
from shared.rpc.observation import store_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from _typeshed import DataclassInstance
    from types_boto3_dynamodb import DynamoDBClient

Item = dict[str, Any]
T = TypeVar("T")
Record = TypeVar("Record", bound="DataclassInstance")

_CONFLICT_ATTEMPTS: Final = 10
_RETRYABLE_REASONS: Final = {"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}
"""Reasons for which DynamoDB cancels a transaction that may succeed a moment later."""
_DISK_IS_FULL: Final = "disk is full"
"""In the message of the local engine, whose database is SQLite's."""
_WRITE_BATCH: Final = 25
_READ_BATCH: Final = 100


class ConditionFailed(Exception):
    """A write was refused because its condition does not hold; nothing was written."""

    def __init__(self, failed: tuple[int, ...] = (0,), item: Item | None = None) -> None:
        super().__init__(f"condition of write {failed} does not hold")
        self.failed = failed
        self.item = item or {}
        """The stored item, if the write asked for it."""


def optimistic_retry(
    operation: Callable[[], T], *, attempts: int = 10, exhausted: Exception, seconds: float = math.inf
) -> T:
    """Run an operation that reads and then writes on condition; repeat it while another writer is faster.

    Raise `exhausted` after `attempts` failures, or if an attempt would start after `seconds`.
    """
    started = time.monotonic()
    for attempt in range(attempts):
        if time.monotonic() - started > seconds:
            break
        try:
            return operation()
        except ConditionFailed:
            # The jitter keeps colliding writers from colliding again.
            time.sleep(random.uniform(0, 0.005 * 2 ** min(attempt, 6)))  # noqa: S311 - jitter, no secret
    raise exhausted


def from_item(kind: type[Record], item: Item) -> Record:
    """Build a dataclass from those attributes of `item` that are its fields."""
    return kind(**{each.name: item[each.name] for each in fields(kind) if each.name in item})


def to_item(record: DataclassInstance) -> Item:
    """Return the fields of a dataclass that have a value, as attributes."""
    return {name: value for name, value in asdict(record).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Write:
    """One write, alone or as part of a transaction."""

    kind: Literal["Put", "Update", "Delete", "ConditionCheck"]
    target: Item
    expression: str = ""
    condition: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    returns_refusing_item: bool = False
    """ConditionFailed has the item for which the condition does not hold."""

    def request(self, table: str) -> dict[str, Any]:
        """Return the write as DynamoDB's request."""
        request: dict[str, Any] = {
            "TableName": table,
            "Item" if self.kind == "Put" else "Key": marshal(self.target),
            "UpdateExpression": self.expression,
            "ConditionExpression": self.condition,
            "ExpressionAttributeValues": marshal(self.values),
            "ExpressionAttributeNames": dict(self.names),
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD" if self.returns_refusing_item else "",
        }
        return {name: value for name, value in request.items() if value}


@dataclass(frozen=True, slots=True)
class Keys:
    """A condition on the sort keys of a partition."""

    condition: str
    values: Mapping[str, str]

    @classmethod
    def beginning(cls, prefix: str) -> Keys:
        """Select keys that begin with `prefix`."""
        return cls("begins_with(sk, :prefix)", {":prefix": prefix})

    @classmethod
    def after(cls, bound: str) -> Keys:
        """Select keys greater than `bound`."""
        return cls("sk > :bound", {":bound": bound})

    @classmethod
    def before(cls, bound: str) -> Keys:
        """Select keys smaller than `bound`."""
        return cls("sk < :bound", {":bound": bound})

    @classmethod
    def between(cls, first: str, last: str) -> Keys:
        """Select keys from `first` to `last`, both included."""
        return cls("sk BETWEEN :first AND :last", {":first": first, ":last": last})

    def request(self, table: str, pk: str) -> Any:
        """Return the query as DynamoDB's request."""
        return {
            "TableName": table,
            "KeyConditionExpression": f"pk = :pk AND {self.condition}",
            "ExpressionAttributeValues": marshal({":pk": pk, **self.values}),
            "ConsistentRead": True,
        }


class Table:
    """One table with the keys `pk` and `sk`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._client = client()

    def get(self, pk: str, sk: str) -> Item | None:
        """Return the item with this key, or None."""
        with _request("GetItem", self.name):
            response = self._client.get_item(TableName=self.name, Key=marshal(_key(pk, sk)), ConsistentRead=True)
        return unmarshal(response["Item"]) if "Item" in response else None

    def get_all(self, keys: Iterable[tuple[str, str]], fields: Sequence[str] = ()) -> Iterator[Item]:
        """Read the existing items of these keys in any order, complete or only `fields`."""
        pending: list[Any] = [marshal(_key(pk, sk)) for pk, sk in keys]
        projection = _projection(fields)
        attempt = 0
        while pending:
            request: Any = {self.name: {"Keys": pending[:_READ_BATCH], "ConsistentRead": True, **projection}}
            with _request("BatchGetItem", self.name):
                response = self._client.batch_get_item(RequestItems=request)
            items = response["Responses"].get(self.name, [])
            yield from (unmarshal(item) for item in items)
            rest = response.get("UnprocessedKeys", {}).get(self.name)
            unprocessed = list(rest["Keys"]) if rest else []
            # A response ends at 16 MB: items that did not fit are requested again immediately.
            attempt = 0 if items or not unprocessed else attempt + 1
            if attempt > _CONFLICT_ATTEMPTS:
                raise Unavailable("The store takes no more reads.")
            if attempt:
                time.sleep(0.02 * 2 ** min(attempt, 5))
            pending = unprocessed + pending[_READ_BATCH:]

    def write(self, write: Write) -> Item:
        """Execute one write. Return the item; after an update, this is the item as stored."""
        request = write.request(self.name)
        written = write.target

        def send() -> None:
            nonlocal written
            if write.kind == "Put":
                self._client.put_item(**request)
            elif write.kind == "Delete":
                self._client.delete_item(**request)
            else:
                written = unmarshal(self._client.update_item(**request, ReturnValues="ALL_NEW")["Attributes"])

        self._retry_conflicts(f"{write.kind}Item", send)
        return written

    def transact(self, *writes: Write) -> None:
        """Execute all writes or none."""
        requests: Any = [{write.kind: write.request(self.name)} for write in writes]
        self._retry_conflicts("TransactWriteItems", lambda: self._client.transact_write_items(TransactItems=requests))

    def _retry_conflicts(self, operation: str, send: Callable[[], object]) -> None:
        """Retry with exponential backoff while another transaction is in progress."""
        for attempt in range(_CONFLICT_ATTEMPTS):
            try:
                with _request(operation, self.name):
                    send()
            except _Conflicted:
                time.sleep(random.uniform(0, 0.02 * 2 ** min(attempt, 5)))  # noqa: S311 - jitter, no secret
            else:
                return
        raise Unavailable("Too many concurrent writers.")

    def query(
        self,
        pk: str,
        keys: Keys,
        *,
        fields: Sequence[str] = (),
        descending: bool = False,
        limit: int | None = None,
    ) -> Iterator[list[Item]]:
        """Query a partition in the order of `sk`, page by page, for complete items or only `fields`."""
        request = keys.request(self.name, pk) | {"ScanIndexForward": not descending} | _projection(fields)
        if limit is not None:
            if limit <= 0:
                return
            request["Limit"] = limit
        for page in self._pages("Query", request):
            yield [unmarshal(item) for item in page["Items"]]
            if limit is not None:
                request["Limit"] -= len(page["Items"])
                if request["Limit"] <= 0:
                    return

    def count(self, pk: str, keys: Keys) -> int:
        """Count the items that `query` would return."""
        request = keys.request(self.name, pk) | {"Select": "COUNT"}
        return sum(page["Count"] for page in self._pages("Query", request))

    def scan(self, prefix: str) -> Iterator[list[Item]]:
        """Scan the whole table for items whose partition begins with `prefix`, page by page."""
        yield from self._scan("begins_with(pk, :prefix)", {":prefix": prefix})

    def keys(self, within: str, sk: str = "") -> Iterator[tuple[str, str]]:
        """Scan the whole table for keys whose partition contains `within`, of one sort key if given."""
        condition, values = "contains(pk, :within)", {":within": within}
        if sk:
            condition, values = f"{condition} AND sk = :sk", values | {":sk": sk}
        for page in self._scan(condition, values, ProjectionExpression="pk, sk"):
            yield from ((item["pk"], item["sk"]) for item in page)

    def scan_from(
        self, position: Item | None, condition: str, values: Mapping[str, Any], limit: int
    ) -> Iterator[tuple[list[Item], Item | None]]:
        """Scan for items from a position on, at most `limit` at a time. Yield each page with the next position."""
        start = {"ExclusiveStartKey": marshal(position)} if position else {}
        for page in self._pages("Scan", self._scan_request(condition, values) | {"Limit": limit} | start):
            next_position = page.get("LastEvaluatedKey")
            yield [unmarshal(item) for item in page["Items"]], next_position and unmarshal(next_position)

    def _scan(self, condition: str, values: Mapping[str, Any], **more: Any) -> Iterator[list[Item]]:
        for page in self._pages("Scan", self._scan_request(condition, values) | more):
            yield [unmarshal(item) for item in page["Items"]]

    def _scan_request(self, condition: str, values: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "TableName": self.name,
            "FilterExpression": condition,
            "ExpressionAttributeValues": marshal(values),
            "ConsistentRead": True,
        }

    def _pages(self, operation: Literal["Query", "Scan"], request: Any) -> Iterator[Any]:
        """Yield each page. Changes that the caller makes to `request` apply to the next page."""
        send = self._client.query if operation == "Query" else self._client.scan
        while True:
            with _request(operation, self.name):
                page: Any = send(**request)
            yield page
            if "LastEvaluatedKey" not in page:
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def delete_range(self, pk: str, keys: Keys) -> None:
        """Delete the items that `query` would return."""
        for page in self.query(pk, keys, fields=("pk", "sk")):
            self.delete_all((item["pk"], item["sk"]) for item in page)

    def delete_all(self, keys: Iterable[tuple[str, str]]) -> None:
        """Delete items by their keys, in any order. After a failure, call it again for the rest."""
        self._write_batches([{"DeleteRequest": {"Key": marshal(_key(pk, sk))}} for pk, sk in keys])

    def put_all(self, items: Iterable[Item]) -> None:
        """Write items, in any order. After a failure, some of them may be written."""
        self._write_batches([{"PutRequest": {"Item": marshal(item)}} for item in items])

    def _write_batches(self, pending: list[Any]) -> None:
        attempt = 0
        while pending:
            with _request("BatchWriteItem", self.name):
                response = self._client.batch_write_item(RequestItems={self.name: pending[:_WRITE_BATCH]})
            unprocessed: list[Any] = response.get("UnprocessedItems", {}).get(self.name, [])
            # A busy partition takes a part of a batch: only a batch without any is an attempt without progress.
            attempt = attempt + 1 if len(unprocessed) == len(pending[:_WRITE_BATCH]) else 0
            if attempt > _CONFLICT_ATTEMPTS:
                raise Unavailable("The store takes no more writes.")
            if unprocessed:
                time.sleep(0.02 * 2 ** min(attempt, 5))
            pending = unprocessed + pending[_WRITE_BATCH:]


def read_from_tables(tables: Iterable[str], pk: str, sk: str) -> dict[str, Item]:
    """Read the item of one key from each of several tables that has it, in one request."""
    request: Any = {name: {"Keys": [marshal(_key(pk, sk))], "ConsistentRead": True} for name in tables}
    with _request("BatchGetItem", "several tables"):
        response = client().batch_get_item(RequestItems=request)
    if response.get("UnprocessedKeys"):
        raise Unavailable("The store takes no more reads.")
    return {name: unmarshal(item) for name, items in response["Responses"].items() for item in items}


@contextmanager
def _request(operation: str, table: str) -> Iterator[None]:
    with store_call(operation, table):
        try:
            yield
        except ClientError as error:
            raise _translate_errors(error, operation, table) from None
        except BotoCoreError as error:
            failure = str(error.kwargs.get("error") or type(error).__name__)
            logger.warning("store", extra={"operation": operation, "table": table, "failure": failure})
            raise Unavailable("The store is not answering.") from None


class _Conflicted(Exception):
    pass


def _translate_errors(error: ClientError, operation: str, table: str) -> Exception:
    details = error.response.get("Error", {})
    code = details.get("Code", "")
    if code == "ConditionalCheckFailedException":
        return ConditionFailed(item=unmarshal(cast("Any", error.response).get("Item", {})))
    if code == "TransactionConflictException":
        return _Conflicted()
    if code == "TransactionCanceledException":
        reasons = [reason.get("Code", "None") for reason in error.response.get("CancellationReasons", [])]
        failed = tuple(index for index, reason in enumerate(reasons) if reason == "ConditionalCheckFailed")
        if failed:
            return ConditionFailed(failed)
        if _RETRYABLE_REASONS.intersection(reasons):
            return _Conflicted()
    if code in ("ValidationException", "ResourceNotFoundException", "AccessDeniedException"):
        return error  # a defect of Kho: crash, with a trace in the log
    failure = f"{code}: {details.get('Message', '')}"
    logger.warning("store", extra={"operation": operation, "table": table, "failure": failure})
    if _DISK_IS_FULL in failure:
        return disk_full()
    return Unavailable("The store is not answering.")


def _projection(fields: Sequence[str]) -> dict[str, Any]:
    names = {f"#{number}": name for number, name in enumerate(fields)}
    return {"ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names} if names else {}


def _key(pk: str, sk: str) -> Item:
    return {"pk": pk, "sk": sk}


def client() -> DynamoDBClient:
    """Return the client of this process, created at the first use."""
    if runtime.dynamodb is None:
        runtime.dynamodb = cast("DynamoDBClient", DynamoDBHttpClient())
    return runtime.dynamodb


def override_client(other: DynamoDBClient | None) -> None:
    """Replace the client, e.g. by one with an operator's credentials; None: create the default one at the next use."""
    if runtime.dynamodb:
        runtime.dynamodb.close()
    runtime.dynamodb = other
