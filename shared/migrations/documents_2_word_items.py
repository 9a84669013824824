"""Documents, format 2: the words of titles and ids of documents that were written before, for `find_documents`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from shared.aws.dynamodb import ConditionFailed, Write, from_item
from shared.documents import keys
from shared.documents.names import word_items
from shared.documents.unit_of_work import DocumentHead
from shared.migrations.migration import Migration
from shared.platform.background import map_concurrently

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shared.aws.dynamodb import Item, Table

_CONCURRENT_WRITES: Final = 16


def _add_words(table: Table, heads: Iterable[Item]) -> int:
    """Add the words that are missing, those of the title that a document has at this moment."""
    items = list(heads)
    existing = {(each["pk"], each["sk"]): each for each in table.get_all(key for item in items for key in _words(item))}

    def add(item: Item | None) -> int:
        while item is not None:
            words = _words(item)
            key = {"pk": item["pk"], "sk": item["sk"]}
            unchanged = Write(
                "ConditionCheck", key, condition="revision = :revision", values={":revision": item["revision"]}
            )
            try:
                table.transact(unchanged, *(Write("Put", each) for each in words.values()))
            except ConditionFailed:
                item = table.get(**key)  # another writer changed the document, perhaps not its title
            else:
                return len(words)
        return 0

    behind = (item for item in items if any(existing.get(key) != each for key, each in _words(item).items()))
    return sum(map_concurrently(add, behind, _CONCURRENT_WRITES))


def _words(item: Item) -> dict[tuple[str, str], Item]:
    return word_items(keys.document_of(item["pk"])[0], from_item(DocumentHead, item))


MIGRATION: Final = Migration(
    "list the words of titles and ids",
    "sk = :document",
    {":document": keys.DOCUMENT},
    _add_words,
)
