"""The tree: where documents stand, and what a transaction checks so that it stays a tree.

Whoever puts a document under a parent checks every document from that parent to the top: its parent is still the
one that was read, and it is not deleted. Two moves that would close a cycle together each check what the other
changes, so that one of them fails. The chain of checks is what bounds the depth of the tree.

`height` is never less than the number of levels below a document; whoever adds a level raises it on the way up.
It may be more, after something deep has left: `measure` finds out. `arrivals` counts what has come directly below,
so that a deletion can tell that nothing has come since it looked.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from shared.documents import errors, keys
from shared.dynamodb import ConditionFailed, Keys, Write

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shared.dynamodb import Item, Table

MAX_DEPTH: Final = 64
ALIVE: Final = "(attribute_not_exists(delete_at) OR delete_at > :now)"


@dataclass(frozen=True, slots=True)
class TreePosition:
    """Where a document stands."""

    document_id: str
    parent_id: str
    order_key: str
    version: int
    arrivals: int
    height: int
    measuring: bool = False
    delete_at: int | None = None
    deletion: str | None = None
    """The deletion that it is, or last was, a part of."""

    @classmethod
    def from_item(cls, item: Item) -> TreePosition:
        """The position that an item holds."""
        return cls(
            document_id=item["document_id"],
            parent_id=item["parent_id"],
            order_key=item["order_key"],
            version=int(item["version"]),
            arrivals=int(item["arrivals"]),
            height=int(item["height"]),
            measuring=item.get("measuring", False),
            delete_at=int(item["delete_at"]) if "delete_at" in item else None,
            deletion=item.get("deletion"),
        )

    def as_item(self) -> Item:
        """The position as an item holds it."""
        item = {name: value for name, value in asdict(self).items() if value is not None}
        return item if self.measuring else {name: value for name, value in item.items() if name != "measuring"}

    @property
    def childless(self) -> bool:
        """Whether nothing has ever been put below it."""
        return self.height == 0 and not self.measuring

    def deleted(self, now: int) -> bool:
        """Whether it is deleted at that moment."""
        return self.delete_at is not None and self.delete_at <= now

    def outlives(self, moment: int) -> bool:
        """Whether it is still there after that moment."""
        return self.delete_at is None or self.delete_at > moment


class Tree:
    """The positions of one tenant's documents."""

    def __init__(self, table: Table, tenant_id: str) -> None:
        self.table = table
        self.tenant_id = tenant_id

    def key(self, document_id: str) -> Item:
        """The key of a position."""
        return {"pk": keys.document(self.tenant_id, document_id), "sk": keys.POSITION}

    def child_key(self, position: TreePosition) -> Item:
        """The key of a document among its parent's children."""
        sk = keys.child(position.order_key, position.document_id)
        return {"pk": keys.children(self.tenant_id, position.parent_id), "sk": sk}

    def find(self, document_id: str) -> TreePosition | None:
        """The position of a document, deleted or not."""
        item = self.table.get(**self.key(document_id))
        return TreePosition.from_item(item) if item else None

    def positions(self, document_ids: Iterable[str]) -> dict[str, TreePosition]:
        """The positions of documents, deleted or not."""
        sought = [(keys.document(self.tenant_id, each), keys.POSITION) for each in document_ids]
        return {each.document_id: each for each in map(TreePosition.from_item, self.table.get_all(sought))}

    def chain(self, parent_id: str, now: int) -> list[TreePosition]:
        """The positions from a parent up to the top, none of them deleted; the root has none."""
        chain: list[TreePosition] = []
        document_id = parent_id
        while document_id != keys.ROOT:
            position = self.find(document_id)
            if position is None:
                raise errors.no_document(parent_id, "parent_id")
            if position.deleted(now):
                raise errors.deleted_parent(parent_id)
            if len(chain) == MAX_DEPTH or any(below.document_id == document_id for below in chain):
                # Read while others were moving it: never written so.
                raise ConditionFailed
            chain.append(position)
            document_id = position.parent_id
        return chain

    def attachment(self, chain: list[TreePosition], height: int) -> list[Write]:
        """What puts a document that has `height` levels below it under the first of `chain`."""
        return [
            self._link(position, levels, is_parent=levels == height + 1)
            for levels, position in enumerate(chain, height + 1)
        ]

    def _link(self, position: TreePosition, levels: int, *, is_parent: bool) -> Write:
        """The check of one document above, as an update where it is the parent or must be made higher."""
        conditions = ["parent_id = :parent", "height < :levels" if position.height < levels else "height >= :levels"]
        values: dict[str, Any] = {":parent": position.parent_id, ":levels": levels}
        # Not compared with the time: a deletion that came since this was planned is later than the plan's now.
        if position.delete_at is None:
            conditions.append("attribute_not_exists(delete_at)")
        else:
            conditions.append("delete_at = :delete_at")
            values[":delete_at"] = position.delete_at
        changes = []
        if position.height < levels:
            changes.append("SET height = :levels")
        if is_parent:
            changes.append("ADD arrivals :one")
            values[":one"] = 1
        return Write(
            "Update" if changes else "ConditionCheck",
            self.key(position.document_id),
            expression=" ".join(changes),
            condition=" AND ".join(conditions),
            values=values,
        )

    def children(self, parent_id: str) -> Iterable[Item]:
        """What lists the children of a document, in order, deleted ones included."""
        pages = self.table.query(keys.children(self.tenant_id, parent_id), Keys.after(" "))
        return (item for page in pages for item in page)

    def has_children_beyond(self, document_id: str, moment: int) -> bool:
        """Whether some child is still there after that moment."""
        return any(
            child.get("delete_at") is None or child["delete_at"] > moment for child in self.children(document_id)
        )

    def measure(self, position: TreePosition, room: int) -> TreePosition:
        """A position whose `height` is what there is below it, where what was stored may say too much.

        From now until the answer is stored, the stored one counts only what is being added below: where that stays
        within what was found, what was found is true. A measurement that broke off is made again by the next move,
        and by this one where what was found has `room`, and what was added meanwhile says, perhaps too much, that it
        has not.
        """
        starting = Write(
            "Update",
            self.key(position.document_id),
            expression="SET height = :none, measuring = :true, version = version + :one",
            condition="version = :version",
            values={":none": 0, ":true": True, ":one": 1, ":version": position.version},
        )
        self.table.write(starting)
        levels = 0
        level = [position.document_id]
        while level := [child["document_id"] for each in level for child in self.children(each)]:
            levels += 1
        found = self.find(position.document_id)
        if found is None or not found.measuring or levels <= room < found.height:
            raise ConditionFailed
        return replace(found, height=max(levels, found.height))

    def measured(self, position: TreePosition) -> Write:
        """What stores a measurement, unless something higher has been added meanwhile."""
        return Write(
            "Update",
            self.key(position.document_id),
            expression="SET height = :height REMOVE measuring",
            condition="height <= :height AND version = :version",
            values={":height": position.height, ":version": position.version},
        )
