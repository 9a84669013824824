"""Documents, format 1: entries in the bin for documents that were deleted before it existed, for `list_deleted`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from shared.aws.dynamodb import ConditionFailed, Write, from_item
from shared.documents import keys
from shared.documents.tree import Tree, TreePosition
from shared.migrations.migration import Migration
from shared.platform.background import map_concurrently

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shared.aws.dynamodb import Item, Table

_CONCURRENT_WRITES: Final = 16


def _add_entries(table: Table, positions: Iterable[Item]) -> int:
    """Add the entries that are missing, unless a document is restored or deleted again at this moment."""
    entries = {}
    for item in positions:
        tree = Tree(table, keys.document_of(item["pk"])[0])
        position = from_item(TreePosition, item)
        (entry,) = tree.bin_writes(None, position)
        check = Write(
            "ConditionCheck",
            tree.key(position.document_id),
            condition="delete_at = :delete_at",
            values={":delete_at": position.delete_at},
        )
        entries[entry.target["pk"], entry.target["sk"]] = entry, check
    for existing in table.get_all(entries, ("pk", "sk")):
        del entries[existing["pk"], existing["sk"]]

    def add(writes: tuple[Write, Write]) -> bool:
        try:
            table.transact(*writes)
        except ConditionFailed:
            return False  # the other writer has kept the bin
        return True

    return sum(map_concurrently(add, entries.values(), _CONCURRENT_WRITES))


MIGRATION: Final = Migration(
    "list the documents that were deleted before the bin existed",
    "sk = :position AND attribute_exists(delete_at)",
    {":position": keys.POSITION},
    _add_entries,
)
