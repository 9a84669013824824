"""The query history of a tenant, newest first."""

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from shared.aws.dynamodb import Keys, Table, Write, from_item
from shared.knowledge import keys
from shared.platform.clock import now
from shared.rpc import cursor as cursors

_KEPT_SECONDS: Final = 90 * 24 * 3600


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """A query and its outcome."""

    query: str
    collections: list[str]
    results: int
    status: str
    asked_at: str


class QueryHistory:
    """The query history of one tenant."""

    def __init__(self, table: Table, tenant_id: str) -> None:
        self._table = table
        self._partition = keys.partition(tenant_id, "queries")

    def add(self, query: str, collections: Sequence[str], results: int, status: str) -> None:
        """Store a query for 90 days."""
        at = now()
        item = {
            "pk": self._partition,
            "sk": f"{at}#{secrets.token_hex(4)}",
            "query": query,
            "collections": list(collections),
            "results": results,
            "status": status,
            "expires_at": int(time.time()) + _KEPT_SECONDS,
        }
        self._table.write(Write("Put", item))

    def page(self, limit: int, cursor: str | None) -> tuple[list[StoredQuery], str | None]:
        """Return at most `limit` queries after `cursor`, newest first, and the next cursor."""
        last = cursors.decode_sort_key(cursor) if cursor else ":"
        if last < " ":
            raise cursors.stale()
        # Sort keys begin with a year: ' ' sorts before all of them, ':' after.
        bounds = Keys.between(" ", last)
        pages = self._table.query(self._partition, bounds, descending=True, limit=limit + 2)
        items = [item for page in pages for item in page if item["sk"] != last and item["expires_at"] > time.time()]
        selected = items[:limit]
        queries = [from_item(StoredQuery, each | {"asked_at": each["sk"].partition("#")[0]}) for each in selected]
        return queries, cursors.encode(selected[-1]["sk"]) if len(items) > limit else None
