"""The document tree: positions, and the conditions by which each transaction keeps it a tree.

A transaction that puts a document under a parent checks every ancestor: its parent is still the one that was read, and
it is not deleted. Of two moves that would close a cycle together, each checks what the other changes, so one fails.
The number of checks in a transaction bounds the depth of the tree.

`height` is never less than the number of levels below a document: adding a level raises it on the way up. It may be
too high after a deep subtree has left; `measure_height` corrects it. `arrivals` counts the documents that came
directly below, so that a deletion can check that none has come since it read the children.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from shared.aws.dynamodb import ConditionFailed, Keys, Write, from_item
from shared.documents import errors, keys
from shared.platform.ttl_cache import TtlCache

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shared.aws.dynamodb import Item, Table

MAX_DEPTH: Final = 64
ALIVE: Final = "attribute_not_exists(gone) AND (attribute_not_exists(delete_at) OR delete_at > :now)"
_PARENT_HINT_SECONDS: Final = 3600

_parent_hints: Final[TtlCache[tuple[str, str], str]] = TtlCache(_PARENT_HINT_SECONDS)
"""The last known parent of each document, by tenant and id. A hint decides what is read together, nothing else."""


@dataclass(frozen=True, slots=True)
class TreePosition:
    """The position of a document in the tree."""

    document_id: str
    parent_id: str
    order_key: str
    version: int = 1
    arrivals: int = 0
    height: int = 0
    measuring: bool | None = None
    delete_at: int | None = None
    gone: bool | None = None
    """True once its deletion has taken effect in a write. A scheduled one takes effect by the clock alone."""
    deletion: str | None = None
    """The id of the deletion that it belongs to, or last belonged to."""

    @property
    def childless(self) -> bool:
        """True if it has never had a child."""
        return self.height == 0 and not self.measuring

    def deleted(self, now: int) -> bool:
        """Return True if the document is deleted at `now`."""
        return not self.outlives(now)

    def outlives(self, timestamp: int) -> bool:
        """Return True if the document exists after `timestamp`."""
        return not self.gone and (self.delete_at is None or self.delete_at > timestamp)


class Tree:
    """The tree of one tenant's documents."""

    def __init__(self, table: Table, tenant_id: str) -> None:
        self.table = table
        self.tenant_id = tenant_id

    def key(self, document_id: str) -> Item:
        """Return the key of a document's position."""
        return {"pk": keys.document(self.tenant_id, document_id), "sk": keys.POSITION}

    def child_key(self, position: TreePosition) -> Item:
        """Return the key of a document in the list of its parent's children."""
        partition = keys.children(self.tenant_id, position.parent_id)
        return {"pk": partition, "sk": keys.child(position.order_key, position.document_id)}

    def bin_writes(self, old: TreePosition | None, new: TreePosition) -> list[Write]:
        """Build the writes that keep the list of deleted documents, if the deletion time changes."""
        before, after = old.delete_at if old else None, new.delete_at
        if before == after:
            return []
        partition = keys.deleted_documents(self.tenant_id)
        writes = []
        if before is not None:
            writes.append(Write("Delete", {"pk": partition, "sk": keys.deleted_document(before, new.document_id)}))
        if after is not None:
            key = {"pk": partition, "sk": keys.deleted_document(after, new.document_id)}
            writes.append(Write("Put", key | {"document_id": new.document_id}))
        return writes

    def find(self, document_id: str) -> TreePosition | None:
        """Return the position of a document, deleted or not."""
        item = self.table.get(**self.key(document_id))
        return from_item(TreePosition, item) if item else None

    def positions(self, document_ids: Iterable[str]) -> dict[str, TreePosition]:
        """Return the positions of those documents that exist, deleted or not."""
        position_keys = [(keys.document(self.tenant_id, document_id), keys.POSITION) for document_id in document_ids]
        return {item["document_id"]: from_item(TreePosition, item) for item in self.table.get_all(position_keys)}

    def ancestors(self, parent_id: str, now: int) -> list[TreePosition]:
        """Return the positions from a parent up to the top, nearest first. Raise if one is missing or deleted.

        Only a document's position names its parent. The ancestors that this process last saw are read in one batch;
        those that have changed since, or were never seen, are read one by one.
        """
        ancestors: list[TreePosition] = []
        positions: dict[str, TreePosition] = {}
        document_id = parent_id
        while document_id != keys.ROOT:
            if document_id not in positions:
                positions |= self.positions(self._expected_ancestors(document_id))
            position = positions.get(document_id)
            if position is None:
                raise errors.no_document(parent_id, "parent_id")
            if position.deleted(now):
                raise errors.deleted_parent(parent_id)
            if len(ancestors) == MAX_DEPTH or position in ancestors:
                # The tree changed between two reads: it never was in this state.
                raise ConditionFailed
            ancestors.append(position)
            _parent_hints.put((self.tenant_id, document_id), position.parent_id)
            document_id = position.parent_id
        return ancestors

    def _expected_ancestors(self, document_id: str) -> list[str]:
        """Return a document's id and, as far as hints lead, those of its ancestors."""
        expected = [document_id]
        while len(expected) < MAX_DEPTH:
            parent_id = _parent_hints.get((self.tenant_id, expected[-1]))
            if parent_id is None or parent_id in (keys.ROOT, *expected):
                break
            expected.append(parent_id)
        return expected

    def attachment_writes(self, ancestors: list[TreePosition], height: int) -> list[Write]:
        """Build the checks and updates of all ancestors for a new child with `height` levels below it."""
        return [
            self._ancestor_write(position, levels, is_parent=levels == height + 1)
            for levels, position in enumerate(ancestors, height + 1)
        ]

    def _ancestor_write(self, position: TreePosition, levels: int, *, is_parent: bool) -> Write:
        """Build the check of one ancestor: an update if it is the parent or its height must grow."""
        conditions = ["parent_id = :parent", "height < :levels" if position.height < levels else "height >= :levels"]
        values: dict[str, Any] = {":parent": position.parent_id, ":levels": levels}
        # A comparison with :now would miss a deletion that was made after this plan took its time.
        if position.delete_at is None:
            conditions.append("attribute_not_exists(delete_at)")
        else:
            conditions.append("delete_at = :delete_at")
            values[":delete_at"] = position.delete_at
        updates = []
        if position.height < levels:
            updates.append("SET height = :levels")
        if is_parent:
            updates.append("ADD arrivals :one")
            values[":one"] = 1
        return Write(
            "Update" if updates else "ConditionCheck",
            self.key(position.document_id),
            expression=" ".join(updates),
            condition=" AND ".join(conditions),
            values=values,
        )

    def children(self, parent_id: str) -> Iterable[Item]:
        """Iterate over the list entries of a document's children in order, deleted ones included."""
        pages = self.table.query(keys.children(self.tenant_id, parent_id), Keys.after(" "))
        return (item for page in pages for item in page)

    def has_children_after(self, document_id: str, timestamp: int) -> bool:
        """Return True if a child of the document exists after `timestamp`."""
        return any(child.get("delete_at", math.inf) > timestamp for child in self.children(document_id))

    def measure_height(self, position: TreePosition, max_height: int) -> TreePosition:
        """Count the levels below a document. Return its position with a height that is exact or too high.

        While `measuring` is set, the stored height covers only levels that other writers add meanwhile. The result is
        the larger of count and stored height. If only the stored height exceeds `max_height`, the levels may have
        left again, so ConditionFailed repeats the move. If the measurement is interrupted, the next move repeats it.
        """
        start = Write(
            "Update",
            self.key(position.document_id),
            expression="SET height = :none, measuring = :true, version = version + :one",
            condition="version = :version",
            values={":none": 0, ":true": True, ":one": 1, ":version": position.version},
        )
        self.table.write(start)
        levels = 0
        level = [position.document_id]
        while level := [child["document_id"] for parent_id in level for child in self.children(parent_id)]:
            levels += 1
        current = self.find(position.document_id)
        if current is None or not current.measuring or levels <= max_height < current.height:
            raise ConditionFailed
        return replace(current, height=max(levels, current.height))
