"""Counting what queries have returned, after they have answered, each once.

Before a query answers it leaves an item that names what it returns. Adding to the counts and noting in that item that
they were added is one transaction, so that an item which is brought twice, or to two workers at once, counts once. The
item goes when whoever ranks knows of the new counts as well.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from typing import TYPE_CHECKING, Final

from shared.dynamodb import ConditionFailed, Write
from shared.experiences import keys
from shared.experiences.models import now
from shared.rpc.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from shared.dynamodb import Item, Table

_TRANSACTION: Final = 100
_ATTEMPTS: Final = 10
_KEPT_SECONDS: Final = 15 * 24 * 3600
"""A day longer than what a worker could not do is kept for another try."""


class QueryCounts:
    """The counts of one table."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def note(self, ids: Sequence[str]) -> None:
        """Note that a query returns the experiences `ids`."""
        pk, sk = keys.served(str(uuid.uuid4()))
        expires_at = int(time.time()) + _KEPT_SECONDS
        self._table.write(Write("Put", {"pk": pk, "sk": sk, "ids": list(ids), "expires_at": expires_at}))

    def count(self, noted: Iterable[tuple[str, str]], counted: Callable[[set[str]], None]) -> None:
        """Add what was noted under these keys to the counts, and tell `counted` whose those are."""
        wanted = list(dict.fromkeys(noted))
        for _ in range(_ATTEMPTS):
            items = list(self._table.get_all(wanted))
            try:
                for together in _transactions([item for item in items if "counted_at" not in item]):
                    self._add(together)
            except ConditionFailed:
                continue  # brought to another worker as well, which has counted some of it
            break
        else:
            raise Unavailable("Too many count the same at once.")
        ids = {id_ for item in items for id_ in item["ids"]}
        if ids:
            counted(ids)
        self._table.delete_all((item["pk"], item["sk"]) for item in items)

    def _add(self, items: Sequence[Item]) -> None:
        at = now()
        noting = [
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
        adding = [
            Write(
                "Update",
                dict(zip(("pk", "sk"), keys.standing(id_), strict=True)),
                expression="SET updated_at = :at ADD query_count :times",
                values={":at": at, ":times": number},
            )
            for id_, number in sorted(times.items())
        ]
        self._table.transact(*noting, *adding)


def _transactions(items: Iterable[Item]) -> Iterator[list[Item]]:
    """`items`, as many at a time as one transaction holds with what they name."""
    together: list[Item] = []
    named: set[str] = set()
    for item in items:
        with_it = named | set(item["ids"])
        if together and len(together) + 1 + len(with_it) > _TRANSACTION:
            yield together
            together, with_it = [], set(item["ids"])
        together.append(item)
        named = with_it
    if together:
        yield together
