"""Query counters: how often queries have returned each experience, counted exactly once after the response.

A query stores an item with the ids that it returns. A worker adds to the counters and marks the item as counted in one
transaction. So an item that is delivered twice, or to two workers concurrently, counts once. The item is deleted when
the index has the new counts, too.
"""

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from shared.aws.dynamodb import Item, Table, Write, optimistic_retry
from shared.experiences import keys
from shared.platform.clock import now
from shared.rpc.errors import Unavailable

_TRANSACTION_WRITES: Final = 100
_ATTEMPTS: Final = 10
_RETENTION_SECONDS: Final = 15 * 24 * 3600
"""A day longer than the dead-letter queue keeps failed records for a redrive."""


class QueryCounts:
    """The query counters in one table."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def record_result(self, ids: Sequence[str]) -> None:
        """Store the ids that a query returns, to be counted later."""
        pk, sk = keys.query_result(str(uuid.uuid4()))
        expires_at = int(time.time()) + _RETENTION_SECONDS
        self._table.write(Write("Put", {"pk": pk, "sk": sk, "ids": list(ids), "expires_at": expires_at}))

    def count(self, result_keys: Iterable[tuple[str, str]], refresh_index: Callable[[set[str]], None]) -> None:
        """Add the query results stored under `result_keys` to the counters, and refresh the index with them."""
        unique_keys = list(dict.fromkeys(result_keys))

        def add_uncounted() -> list[Item]:
            items = list(self._table.get_all(unique_keys))
            for batch in _transaction_batches([item for item in items if "counted_at" not in item]):
                self._add(batch)
            return items

        exhausted = Unavailable("Too many workers are counting the same results.")
        items = optimistic_retry(add_uncounted, attempts=_ATTEMPTS, exhausted=exhausted)
        ids = {id_ for item in items for id_ in item["ids"]}
        if ids:
            refresh_index(ids)
        self._table.delete_all((item["pk"], item["sk"]) for item in items)

    def _add(self, items: Sequence[Item]) -> None:
        at = now()
        marks = [
            Write(
                "Update",
                {"pk": item["pk"], "sk": item["sk"]},
                expression="SET counted_at = :at",
                condition="attribute_exists(pk) AND attribute_not_exists(counted_at)",
                values={":at": at},
            )
            for item in items
        ]
        times = Counter(id_ for item in items for id_ in item["ids"])
        increments = [
            Write(
                "Update",
                dict(zip(("pk", "sk"), keys.query_counter(id_), strict=True)),
                expression="SET updated_at = :at ADD query_count :times",
                values={":at": at, ":times": number},
            )
            for id_, number in sorted(times.items())
        ]
        self._table.transact(*marks, *increments)


def _transaction_batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Split `items` into batches whose marks and counters fit in one transaction."""
    batch: list[Item] = []
    ids: set[str] = set()
    for item in items:
        ids_with_item = ids | set(item["ids"])
        if batch and len(batch) + 1 + len(ids_with_item) > _TRANSACTION_WRITES:
            yield batch
            batch, ids_with_item = [], set(item["ids"])
        batch.append(item)
        ids = ids_with_item
    if batch:
        yield batch
