"""The search for documents by words of their titles and ids."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from shared.aws.dynamodb import Keys
from shared.documents import keys
from shared.documents.metadata_filter import matches
from shared.documents.models import ChildDocument, FoundDocuments
from shared.documents.names import asked_words, document_words, have_words, word_items
from shared.documents.queries import describe
from shared.rpc import cursor as cursors
from shared.rpc import timestamps
from shared.rpc.errors import FieldProblem, InvalidParams
from shared.rpc.response_size import SizeBudget, take_page

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from shared.aws.dynamodb import Item, Table
    from shared.documents.queries import DocumentQueries

_MOST_ITEMS: Final = 2_000
"""The items that one call reads at most. Its page may be empty then, and has a cursor."""
_BATCH: Final = 100
_MOST_COMPARED: Final = 4
"""The words of a query of which the rarest is looked for."""
_WITHOUT_WORD: Final = keys.word("", "")
_AFTER_ALL: Final = "\U0010ffff"


@dataclass(slots=True)
class NameSearch:
    """One call of the search: its words, the filter of metadata, and where it has stopped before the end."""

    table: Table
    tenant_id: str
    queries: DocumentQueries
    asked: list[str]
    metadata: Mapping[str, Any]
    stopped: str | None = field(default=None, init=False)

    def page(self, limit: int, cursor: str | None) -> FoundDocuments:
        """Return a page of the documents that have all words, by the word and the id."""
        word, after = self._position(cursor)
        rows = self._documents(word, after, limit)
        page, rest = take_page(rows, limit, SizeBudget(), lambda row: row[1])
        last = page[-1][0] if rest is not None else self.stopped
        following = None if last is None else cursors.encode(self.asked.index(word), last)
        return FoundDocuments([document for _, document in page], following)

    def _position(self, cursor: str | None) -> tuple[str, str]:
        """Return the word that is looked for, and the sort key after which the page begins."""
        if cursor is None:
            return self._rarest(), ""
        number, after = cursors.decode(cursor, int, str)
        if number >= len(self.asked):
            raise cursors.stale()
        return self.asked[number], cursors.require_sort_key(after)

    def _rarest(self) -> str:
        """Return the word with the fewest items, as far as a short look at each tells."""
        counts = {}
        if len(self.asked) > 1:
            for word in self.asked[:_MOST_COMPARED]:
                counts[word] = sum(len(page) for page in self._page_of_items(word, "", _BATCH))
                if counts[word] < _BATCH:
                    break
        return min(counts, key=lambda word: counts[word], default=self.asked[0])

    def _page_of_items(self, word: str, after: str, limit: int) -> Iterator[list[Item]]:
        first = f"{after} " if after else word or _WITHOUT_WORD  # no id has a space
        partition = keys.words(self.tenant_id, word)
        return self.table.query(partition, Keys.between(first, f"{word}{_AFTER_ALL}"), limit=limit)

    def _items(self, word: str, after: str, limit: int) -> Iterator[list[Item]]:
        """Yield batches of the items of a word's beginning, and then those of documents with very many words."""
        size = min(limit + 1, _BATCH)
        read = 0
        places = [("", after)] if after.startswith(_WITHOUT_WORD) else [(word, after), ("", "")]
        for beginning, start in places:
            position = start
            while True:
                items = [item for page in self._page_of_items(beginning, position, size) for item in page]
                yield items
                if len(items) < size:
                    break
                position = items[-1]["sk"]
                read += len(items)
                size = _BATCH
                if read >= _MOST_ITEMS:
                    self.stopped = position
                    return

    def _documents(self, word: str, after: str, limit: int) -> Iterator[tuple[str, ChildDocument]]:
        """Yield each document at the first of its items that the search reads, with the item's sort key."""
        now = timestamps.now()
        for items in self._items(word, after, limit):
            likely = [item for item in items if "words" not in item or have_words(item["words"].split(), self.asked)]
            heads = self.queries.heads(dict.fromkeys(item["document_id"] for item in likely))
            for item in likely:
                head = heads.get(item["document_id"])
                if head is None or head.deleted(now) or not have_words(document_words(head), self.asked):
                    continue
                own = [sk for _, sk in word_items(self.tenant_id, head)]
                first = min((sk for sk in own if sk.startswith(word)), default=keys.word("", head.document_id))
                described = describe(head)
                if item["sk"] == first and matches(described["metadata"], self.metadata):
                    yield item["sk"], ChildDocument(mime_type=head.mime_type, **described)


def find(table: Table, tenant_id: str, queries: DocumentQueries, query: str, metadata: Mapping[str, Any]) -> NameSearch:
    """Return the search for a query. Raise InvalidParams if it has no word."""
    asked = asked_words(query)
    if not asked:
        raise InvalidParams(FieldProblem(field="query", message="should have a letter or a digit"))
    return NameSearch(table, tenant_id, queries, asked, metadata)
