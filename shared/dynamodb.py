"""DynamoDB, in plain Python values: the one place that speaks to it.

Reads are strongly consistent. What DynamoDB refuses by a condition is a `ConditionFailed` for the caller to
understand; what it cannot answer is `Unavailable`.
"""

from __future__ import annotations

import random
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from botocore.exceptions import BotoCoreError, ClientError

from shared.aws.attribute_values import marshal, unmarshal
from shared.aws.dynamodb import DynamoDBHttpClient
from shared.rpc.errors import Unavailable
from shared.telemetry import logger, store_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from types_boto3_dynamodb import DynamoDBClient

Item = dict[str, Any]

_CONFLICT_ATTEMPTS: Final = 10
_BATCH: Final = 25
_BATCH_OF_READS: Final = 100


class ConditionFailed(Exception):
    """A write was refused because its condition does not hold; nothing was written."""

    def __init__(self, failed: tuple[int, ...] = (0,)) -> None:
        super().__init__(f"condition of write {failed} does not hold")
        self.failed = failed


@dataclass(frozen=True, slots=True)
class Write:
    """One write, alone or as part of a transaction."""

    kind: Literal["Put", "Update", "Delete", "ConditionCheck"]
    target: Item
    expression: str = ""
    condition: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    def request(self, table: str) -> dict[str, Any]:
        """This write in DynamoDB's words."""
        request: dict[str, Any] = {
            "TableName": table,
            "Item" if self.kind == "Put" else "Key": marshal(self.target),
            "UpdateExpression": self.expression,
            "ConditionExpression": self.condition,
            "ExpressionAttributeValues": marshal(self.values),
            "ExpressionAttributeNames": dict(self.names),
        }
        return {name: value for name, value in request.items() if value}


@dataclass(frozen=True, slots=True)
class Keys:
    """Which sort keys of a partition a query takes."""

    condition: str
    values: Mapping[str, str]

    @classmethod
    def beginning(cls, prefix: str) -> Keys:
        """Those that begin with `prefix`."""
        return cls("begins_with(sk, :prefix)", {":prefix": prefix})

    @classmethod
    def after(cls, bound: str) -> Keys:
        """Those greater than `bound`."""
        return cls("sk > :bound", {":bound": bound})

    @classmethod
    def before(cls, bound: str) -> Keys:
        """Those smaller than `bound`."""
        return cls("sk < :bound", {":bound": bound})

    @classmethod
    def between(cls, first: str, last: str) -> Keys:
        """Those from `first` to `last`, both included."""
        return cls("sk BETWEEN :first AND :last", {":first": first, ":last": last})

    def request(self, table: str, pk: str) -> Any:
        """These keys in DynamoDB's words."""
        return {
            "TableName": table,
            "KeyConditionExpression": f"pk = :pk AND {self.condition}",
            "ExpressionAttributeValues": marshal({":pk": pk, **self.values}),
            "ConsistentRead": True,
        }


class Table:
    """One table, whose items have the keys `pk` and `sk`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._client = client()

    def get(self, pk: str, sk: str) -> Item | None:
        """The item under a key."""
        with self._asking("GetItem"):
            found = self._client.get_item(TableName=self.name, Key=marshal(_key(pk, sk)), ConsistentRead=True)
        return unmarshal(found["Item"]) if "Item" in found else None

    def get_all(self, keys: Iterable[tuple[str, str]], fields: Sequence[str] = ()) -> Iterator[Item]:
        """The items under those of the keys that have one, in any order, or these fields of them."""
        left: list[Any] = [marshal(_key(pk, sk)) for pk, sk in keys]
        names = {f"#{number}": name for number, name in enumerate(fields)}
        wanted = {"ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names} if names else {}
        attempt = 0
        while left:
            asked: Any = {self.name: {"Keys": left[:_BATCH_OF_READS], "ConsistentRead": True, **wanted}}
            with self._asking("BatchGetItem"):
                answer = self._client.batch_get_item(RequestItems=asked)
            found = answer["Responses"].get(self.name, [])
            yield from (unmarshal(item) for item in found)
            missed = answer.get("UnprocessedKeys", {}).get(self.name)
            unprocessed = list(missed["Keys"]) if missed else []
            # An answer ends at 16 MB: what did not fit is asked for again, and at once.
            attempt = 0 if found or not unprocessed else attempt + 1
            if attempt > _CONFLICT_ATTEMPTS:
                raise Unavailable("The store takes no more reads.")
            if attempt:
                time.sleep(0.02 * 2 ** min(attempt, 5))
            left = unprocessed + left[_BATCH_OF_READS:]

    def write(self, write: Write) -> Item:
        """Carry out one write; an update answers with the item as it is then."""
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
        """Carry out all writes or none."""
        requests: Any = [{write.kind: write.request(self.name)} for write in writes]
        self._retry_conflicts("TransactWriteItems", lambda: self._client.transact_write_items(TransactItems=requests))

    def _retry_conflicts(self, operation: str, send: Callable[[], object]) -> None:
        """Meet a transaction that is under way, and wait it out."""
        for attempt in range(_CONFLICT_ATTEMPTS):
            try:
                with self._asking(operation):
                    send()
            except _Conflicted:
                time.sleep(random.uniform(0, 0.02 * 2 ** min(attempt, 5)))  # noqa: S311 - spreads retries, no secret
            else:
                return
        raise Unavailable("Too many writers at once.")

    def query(self, pk: str, keys: Keys, *, descending: bool = False, limit: int | None = None) -> Iterator[list[Item]]:
        """The items of a partition in the order of their `sk`, page by page."""
        request = keys.request(self.name, pk) | {"ScanIndexForward": not descending}
        left = limit
        while left is None or left > 0:
            if left is not None:
                request["Limit"] = left
            with self._asking("Query"):
                found = self._client.query(**request)
            items = [unmarshal(item) for item in found["Items"]]
            yield items
            if "LastEvaluatedKey" not in found:
                return
            request["ExclusiveStartKey"] = found["LastEvaluatedKey"]
            left = None if left is None else left - len(items)

    def count(self, pk: str, keys: Keys) -> int:
        """How many items `query` would give."""
        request = keys.request(self.name, pk) | {"Select": "COUNT"}
        total = 0
        while True:
            with self._asking("Query"):
                found = self._client.query(**request)
            total += found["Count"]
            if "LastEvaluatedKey" not in found:
                return total
            request["ExclusiveStartKey"] = found["LastEvaluatedKey"]

    def scan(self, prefix: str) -> Iterator[list[Item]]:
        """Every item whose partition begins with `prefix`, page by page; all of the table is read for it."""
        yield from self._scan("begins_with(pk, :prefix)", {":prefix": prefix})

    def keys(self, within: str, sk: str = "") -> Iterator[tuple[str, str]]:
        """The keys of items whose partition holds `within`, of one sort key if given; all of the table is read."""
        condition, values = "contains(pk, :within)", {":within": within}
        if sk:
            condition, values = f"{condition} AND sk = :sk", values | {":sk": sk}
        for page in self._scan(condition, values, ProjectionExpression="pk, sk"):
            yield from ((item["pk"], item["sk"]) for item in page)

    def _scan(self, condition: str, values: Mapping[str, str], **more: Any) -> Iterator[list[Item]]:
        request: Any = {
            "TableName": self.name,
            "FilterExpression": condition,
            "ExpressionAttributeValues": marshal(values),
            "ConsistentRead": True,
            **more,
        }
        while True:
            with self._asking("Scan"):
                found = self._client.scan(**request)
            yield [unmarshal(item) for item in found["Items"]]
            if "LastEvaluatedKey" not in found:
                return
            request["ExclusiveStartKey"] = found["LastEvaluatedKey"]

    def delete_all(self, keys: Iterable[tuple[str, str]]) -> None:
        """Delete items by their keys, in any order; a failure leaves the rest to a repeated call."""
        left: list[Any] = [{"DeleteRequest": {"Key": marshal(_key(pk, sk))}} for pk, sk in keys]
        attempt = 0
        while left:
            with self._asking("BatchWriteItem"):
                answer = self._client.batch_write_item(RequestItems={self.name: left[:_BATCH]})
            unprocessed: list[Any] = answer.get("UnprocessedItems", {}).get(self.name, [])
            # Only where nothing went through is there no progress: a busy partition takes a part at a time.
            attempt = attempt + 1 if len(unprocessed) == len(left[:_BATCH]) else 0
            if attempt > _CONFLICT_ATTEMPTS:
                raise Unavailable("The store takes no more writes.")
            if unprocessed:
                time.sleep(0.02 * 2 ** min(attempt, 5))
            left = unprocessed + left[_BATCH:]

    @contextmanager
    def _asking(self, operation: str) -> Iterator[None]:
        with store_call(operation, self.name):
            try:
                yield
            except ClientError as error:
                raise _translate_errors(error, operation) from None
            except BotoCoreError as error:
                failure = str(error.kwargs.get("error") or type(error).__name__)
                logger.warning("store", extra={"operation": operation, "failure": failure})
                raise Unavailable("The store is not answering.") from None


class _Conflicted(Exception):
    pass


def _translate_errors(error: ClientError, operation: str) -> Exception:
    code = error.response.get("Error", {}).get("Code", "")
    if code == "ConditionalCheckFailedException":
        return ConditionFailed()
    if code == "TransactionConflictException":
        return _Conflicted()
    if code == "TransactionCanceledException":
        reasons = [reason.get("Code", "None") for reason in error.response.get("CancellationReasons", [])]
        failed = tuple(index for index, reason in enumerate(reasons) if reason == "ConditionalCheckFailed")
        if failed:
            return ConditionFailed(failed)
        if "TransactionConflict" in reasons:
            return _Conflicted()
    if code in ("ValidationException", "ResourceNotFoundException", "AccessDeniedException"):
        return error  # our own defect: a crash, with its trace in the log
    logger.warning("store", extra={"operation": operation, "failure": code})
    return Unavailable("The store is not answering.")


def _key(pk: str, sk: str) -> Item:
    return {"pk": pk, "sk": sk}


_client: list[DynamoDBClient] = []


def client() -> DynamoDBClient:
    """The one client of this process, made at the first use."""
    if not _client:
        override_client(cast("DynamoDBClient", DynamoDBHttpClient()))
    return _client[0]


def override_client(other: DynamoDBClient | None) -> None:
    """Ask the store through `other`, as who signs in as an operator does; None: as functions do, wherever it is now."""
    for former in _client:
        former.close()
    _client[:] = [other] if other else []
