"""The collections of one tenant."""

import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Final

from shared.aws.dynamodb import ConditionFailed, Item, Keys, Table, Write, from_item
from shared.knowledge import keys
from shared.knowledge.errors import collection_exists, no_collection, nothing_to_search, other_embedding
from shared.knowledge.models import MAX_NAME, Collection, CollectionType, RecordedSpace
from shared.platform.clock import now
from shared.rpc import cursor as cursors
from shared.rpc.names import stored_forms

_PURGED_AGAIN_AFTER_SECONDS: Final = 1800
"""Longer than any worker lives: by then no writer can still add to the collection."""


class CollectionStore:
    """The collections of one tenant."""

    def __init__(self, table: Table, tenant_id: str) -> None:
        self.table = table
        self.tenant_id = tenant_id
        self._partition = keys.partition(tenant_id, "collections")

    def create(self, name: str, kind: CollectionType, space: RecordedSpace) -> Collection:
        """Create a collection whose passages are embedded in `space`."""
        item = {
            "pk": self._partition,
            "sk": name,
            "id": secrets.token_hex(12),
            "type": kind,
            "created_at": now(),
            **asdict(space),
        }
        try:
            self.table.write(Write("Put", item, condition="attribute_not_exists(pk)"))
        except ConditionFailed:
            raise collection_exists(name) from None
        return _collection(item)

    def find(self, name: str) -> Collection | None:
        """Return the collection of this name, if it exists."""
        for each in stored_forms(name) if 0 < len(name) <= MAX_NAME else ():
            item = self.table.get(self._partition, each)
            if item:
                return _collection(item)
        return None

    def require(self, name: str, space: RecordedSpace | None = None) -> Collection:
        """Return the collection of this name. Raise an error if it is missing or not embedded in a given `space`."""
        collection = self.find(name)
        if collection is None:
            raise no_collection(name)
        if space is not None and collection.space != space:
            raise other_embedding(name, str(collection.space), str(space))
        return collection

    def require_unchanged(self, collection: Collection) -> None:
        """Raise an error if the collection was deleted in the meantime, even if another now has its name."""
        if self.require(collection.name).id != collection.id:
            raise no_collection(collection.name)

    def select(self, names: Sequence[str], space: RecordedSpace) -> list[Collection]:
        """Return the collections of these names, or all collections of `space` if no name is given."""
        if names:
            return [self.require(name, space) for name in dict.fromkeys(names)]
        matching = [each for each in self.list_all() if each.space == space]
        if not matching:
            raise nothing_to_search()
        return matching

    def list_all(self) -> list[Collection]:
        """Return all collections, ordered by name."""
        return self.page(None, None)[0]

    def page(self, limit: int | None, cursor: str | None) -> tuple[list[Collection], str | None]:
        """Return at most `limit` collections after `cursor`, ordered by name, and the next cursor."""
        after = cursors.decode_sort_key(cursor) if cursor else " "
        pages = self.table.query(self._partition, Keys.after(after), limit=limit and limit + 1)
        collections = [_collection(item) for page in pages for item in page]
        selected = collections[:limit]
        return selected, cursors.encode(selected[-1].name) if len(collections) > len(selected) else None

    def delete(self, name: str) -> Collection:
        """Delete the collection, and schedule the deletion of everything in it."""
        collection = self.require(name)
        purge = {
            "pk": keys.partition(self.tenant_id, "work"),
            "sk": f"{keys.PURGE}{collection.id}",
            "expires_at": int(time.time()) + _PURGED_AGAIN_AFTER_SECONDS,
        }
        key = {"pk": self._partition, "sk": collection.name}
        deletion = Write("Delete", key, condition="id = :id", values={":id": collection.id})
        try:
            self.table.transact(deletion, Write("Put", purge))
        except ConditionFailed:
            raise no_collection(name) from None  # deleted concurrently
        return collection

    def record_space(self, collection: Collection, space: RecordedSpace) -> None:
        """Record that the passages of a collection are now embedded in `space`."""
        update = Write(
            "Update",
            {"pk": self._partition, "sk": collection.name},
            expression="SET model = :model, dimensions = :dimensions, prefix = :prefix",
            condition="id = :id",
            values={f":{name}": value for name, value in asdict(space).items()} | {":id": collection.id},
        )
        with suppress(ConditionFailed):  # the collection was deleted in the meantime
            self.table.write(update)

    def purge(self, collection_id: str) -> None:
        """Delete the documents and texts of a deleted collection."""
        for kind in ("documents", "texts"):
            self.table.delete_range(keys.partition(self.tenant_id, kind, collection_id), Keys.after("\0"))


def _collection(item: Item) -> Collection:
    return from_item(Collection, item | {"name": item["sk"], "space": from_item(RecordedSpace, item)})
