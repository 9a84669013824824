"""Reads of documents: a single one, the children of a parent, the audit log."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

from shared.aws.blob_store import BlobStore, decompress
from shared.aws.dynamodb import Item, Keys, Table, from_item, optimistic_retry
from shared.documents import errors, keys
from shared.documents.models import (
    Actor,
    Ancestor,
    AuditEntry,
    AuditLogPage,
    ChildDocument,
    ChildPage,
    Content,
    DeletedDocument,
    DeletedDocumentPage,
    Document,
    FoundDocuments,
)
from shared.documents.tree import Tree, TreePosition
from shared.documents.unit_of_work import ATTEMPTS, DocumentHead
from shared.rpc import cursor as cursors
from shared.rpc import timestamps
from shared.rpc.response_size import SizeBudget, take_page

_HEADS_PER_BATCH: Final = 100
_LAST_REVISION: Final = 999_999_999_999
_LONGEST_SORT_KEY: Final = 1024
_BEFORE_ALL: Final = " "
_AFTER_ALL: Final = "~"
"""Before and after each character of an order key and of an id."""

P = TypeVar("P", str, int)
T = TypeVar("T", ChildDocument, DeletedDocument, AuditEntry)


@dataclass(frozen=True, slots=True)
class ChildrenQuery:
    """The children that are listed: those that are not deleted, or the `deleted` ones, whose parent may be deleted too.

    `has_children` adds the field of this name.
    """

    parent_id: str
    from_child: str | None = None
    backwards: bool = False
    deleted: bool = False
    has_children: bool = False


class DocumentQueries:
    """Read access to the documents of one tenant."""

    def __init__(self, table: Table, tenant_id: str) -> None:
        self._table = table
        self._tenant_id = tenant_id
        self._bodies = BlobStore(table, partial(keys.body, tenant_id), keys.PART_DIGITS)

    def document(self, document_id: str, revision: int | None = None) -> Document:
        """Return a document that is not deleted, at its current or an earlier revision."""
        head = self.head(document_id)
        if head is None or head.deleted(timestamps.now()):
            raise errors.no_document(document_id)
        if revision is not None and revision != head.revision:
            head = self._head_at(head, revision)
        content = self.content(head)
        described = _description(head, content["metadata"], is_human_readable=content["is_human_readable"])
        return Document(content=Content(content["mime_type"], self.text(content)), **described)

    def children(self, query: ChildrenQuery, limit: int, cursor: str | None) -> ChildPage:
        """Return a page of a parent's children in order. Without a cursor it begins with `from_child`."""
        now = timestamps.now()
        parent_id = query.parent_id
        if parent_id != keys.ROOT:
            position = Tree(self._table, self._tenant_id).find(parent_id)
            if position is None or (position.deleted(now) and not query.deleted):
                raise errors.no_document(parent_id, "parent_id")
        if cursor:
            bound = _sort_key(cursor)
        elif query.from_child:
            bound = self._sort_key_around(parent_id, query.from_child, backwards=query.backwards)
        else:
            bound = _AFTER_ALL if query.backwards else _BEFORE_ALL
        children, next_cursor = _page(self._children(query, bound, limit, now), limit)
        if query.has_children:
            positions = Tree(self._table, self._tenant_id).positions(child.document_id for child in children)
            children = [replace(each, has_children=not positions[each.document_id].childless) for each in children]
        return ChildPage(children, next_cursor)

    def deleted_documents(self, limit: int, cursor: str | None) -> DeletedDocumentPage:
        """Return a page of the deleted documents whose parent is not deleted, last deleted first."""
        now = timestamps.now()
        before = _sort_key(cursor) if cursor else _AFTER_ALL
        return DeletedDocumentPage(*_page(self._deleted(before, now), limit))

    def find(self, query: str, metadata: Mapping[str, Any], limit: int, cursor: str | None) -> FoundDocuments:
        """Return a page of the documents with all words of a query in their titles and ids, by the words found."""
        from shared.documents.name_search import find

        return find(self._table, self._tenant_id, self, query, metadata).page(limit, cursor)

    def ancestors(self, document_id: str) -> list[Ancestor]:
        """Return the documents above one that is not deleted, from the top down."""

        def attempt() -> list[TreePosition]:
            now = timestamps.now()
            head = self.head(document_id)
            if head is None or head.deleted(now):
                raise errors.no_document(document_id)
            return Tree(self._table, self._tenant_id).ancestors(head.parent_id, now)

        above = optimistic_retry(attempt, attempts=ATTEMPTS, exhausted=errors.too_busy(document_id))
        heads = self.heads(position.document_id for position in above)
        titles = {id_: json.loads(head.metadata).get("title") for id_, head in heads.items()}
        return [Ancestor(each.document_id, titles[each.document_id]) for each in reversed(above)]

    def history(self, document_id: str, limit: int, cursor: str | None, *, newest_first: bool = False) -> AuditLogPage:
        """Return a page of the changes of a document, deleted or not, oldest or newest first."""
        if self.head(document_id) is None:
            raise errors.no_document(document_id)
        first, last = 1, _LAST_REVISION
        if cursor:
            revision = cursors.decode(cursor, int)[0]
            if not 1 <= revision < _LAST_REVISION:
                raise cursors.stale()
            first, last = (1, revision - 1) if newest_first else (revision + 1, _LAST_REVISION)
        entries, next_cursor = _page(self._entries(document_id, first, last, limit, newest_first=newest_first), limit)
        return AuditLogPage(entries, next_cursor)

    def head(self, document_id: str) -> DocumentHead | None:
        """Return a document without its text, deleted or not, or None if it was never created."""
        item = self._table.get(keys.document(self._tenant_id, document_id), keys.DOCUMENT)
        return from_item(DocumentHead, item) if item else None

    def heads(self, document_ids: Iterable[str]) -> dict[str, DocumentHead]:
        """Return those of several documents, deleted or not, that were ever created."""
        head_keys = [(keys.document(self._tenant_id, document_id), keys.DOCUMENT) for document_id in document_ids]
        return {item["document_id"]: from_item(DocumentHead, item) for item in self._table.get_all(head_keys)}

    def body(self, head: DocumentHead) -> str:
        """Return the text of a document."""
        return self.text(self.content(head))

    def content(self, head: DocumentHead, revision: int | None = None) -> Item:
        """Return the item with the text, metadata and flag of a document, at its current or an earlier revision."""
        at = head if revision is None else self._head_at(head, revision)
        content = self._table.get(keys.document(self._tenant_id, head.document_id), keys.content(at.content_revision))
        assert content is not None
        return content

    def text(self, content: Item) -> str:
        """Return the text of a content item, which holds it or names its blob."""
        if "body" in content:
            return decompress(bytes(content["body"]))
        text = self._bodies.read(content["body_digest"])
        assert text is not None
        return text

    def _head_at(self, head: DocumentHead, revision: int) -> DocumentHead:
        entry = self._table.get(keys.document(self._tenant_id, head.document_id), keys.history(revision))
        if entry is None:
            raise errors.no_revision(head.document_id, revision, head.revision)
        return replace(
            head,
            revision=revision,
            content_revision=entry["content_revision"],
            parent_id=entry["parent_id"],
            updated_at=entry["at"],
            delete_at=entry.get("delete_at"),
        )

    def _sort_key_around(self, parent_id: str, child_id: str, *, backwards: bool) -> str:
        """Return the sort key beyond which a list begins with a child."""
        position = Tree(self._table, self._tenant_id).find(child_id)
        if position is None or position.parent_id != parent_id:
            raise errors.no_document(child_id, "from_child")
        key = keys.child(position.order_key, child_id)
        return f"{key}{_BEFORE_ALL}" if backwards else f"{key[:-1]}{chr(ord(key[-1]) - 1)}{_AFTER_ALL}"

    def _children(self, query: ChildrenQuery, bound: str, limit: int, now: int) -> Iterator[tuple[str, ChildDocument]]:
        """Iterate over the deleted or other children beyond a sort key, each with its sort key."""
        partition = keys.children(self._tenant_id, query.parent_id)
        size = min(limit + 1, _HEADS_PER_BATCH)
        beyond = Keys.before if query.backwards else Keys.after
        entries: list[Item] = [{"sk": bound}]
        while entries:
            pages = self._table.query(partition, beyond(entries[-1]["sk"]), descending=query.backwards, limit=size)
            entries = [item for page in pages for item in page]
            matching = [entry for entry in entries if (entry.get("delete_at", math.inf) <= now) == query.deleted]
            heads = self.heads(entry["document_id"] for entry in matching)
            for entry in matching:
                head = heads[entry["document_id"]]
                # It may have been moved, deleted or restored since it was listed.
                if head.parent_id == query.parent_id and head.deleted(now) == query.deleted:
                    described = describe(head)
                    yield entry["sk"], ChildDocument(mime_type=head.mime_type, **described)
            if len(entries) < size:
                return

    def _deleted(self, before: str, now: int) -> Iterator[tuple[str, DeletedDocument]]:
        """Iterate over the deleted documents before a sort key whose parent is not deleted, each with its sort key."""
        partition = keys.deleted_documents(self._tenant_id)
        entries: list[Item] = [{"sk": before}]
        while entries:
            bound = Keys.before(entries[-1]["sk"])
            pages = self._table.query(partition, bound, descending=True, limit=_HEADS_PER_BATCH)
            entries = [item for page in pages for item in page]
            heads = self.heads(entry["document_id"] for entry in entries)
            parents = self.heads({head.parent_id for head in heads.values()} - {keys.ROOT})
            for entry in entries:
                head = heads[entry["document_id"]]
                parent = parents.get(head.parent_id)
                # It may have been restored, or deleted again, since the entries were read.
                current = entry["sk"] == keys.deleted_document(head.delete_at or 0, head.document_id)
                if current and head.deleted(now) and not (parent and parent.deleted(now)):
                    title = json.loads(parent.metadata).get("title") if parent else None
                    described = describe(head)
                    yield entry["sk"], DeletedDocument(mime_type=head.mime_type, parent_title=title, **described)
            if len(entries) < _HEADS_PER_BATCH:
                return

    def _entries(
        self, document_id: str, first: int, last: int, limit: int, *, newest_first: bool
    ) -> Iterator[tuple[int, AuditEntry]]:
        """Iterate over the changes that led to some revisions, each with its revision."""
        if first > last:
            return
        bounds = Keys.between(keys.history(first), keys.history(last))
        partition = keys.document(self._tenant_id, document_id)
        for page in self._table.query(partition, bounds, descending=newest_first, limit=limit + 1):
            for item in page:
                times = {name: timestamps.to_iso(item[name]) for name in ("at", "delete_at") if name in item}
                author = Actor(item["sub"], item["labels"])
                yield item["revision"], from_item(AuditEntry, item | times | {"by": author})


def _sort_key(cursor: str) -> str:
    """Return the sort key that a cursor names."""
    key = cursors.decode_sort_key(cursor)
    if len(key) > _LONGEST_SORT_KEY or not key.isascii():
        raise cursors.stale()
    return key


def _page(rows: Iterator[tuple[P, T]], limit: int) -> tuple[list[T], str | None]:
    """Return the rows that fit on a page, and a cursor to the last of them if more follow."""
    page, rest = take_page(rows, limit, SizeBudget(), lambda row: row[1])
    return [row for _, row in page], None if rest is None else cursors.encode(page[-1][0])


def describe(head: DocumentHead) -> dict[str, Any]:
    """Return the fields of `DocumentDescription` of a document as it is now."""
    return _description(head, head.metadata, is_human_readable=head.is_human_readable)


def _description(head: DocumentHead, metadata: str, *, is_human_readable: bool) -> dict[str, Any]:
    """Return the fields of `DocumentDescription`. Metadata and flag are those of the revision that is described."""
    return {
        "document_id": head.document_id,
        "parent_id": head.parent_id,
        "metadata": json.loads(metadata),
        "is_human_readable": is_human_readable,
        "revision": head.revision,
        "created_at": timestamps.to_iso(head.created_at),
        "updated_at": timestamps.to_iso(head.updated_at),
        "delete_at": timestamps.optional_iso(head.delete_at),
    }
