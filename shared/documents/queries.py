"""What is read of documents: one, a parent's children, the audit log."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Final, TypeVar

from shared.documents import errors, keys, timestamps
from shared.documents.body_store import BodyStore
from shared.documents.models import Actor, AuditEntry, AuditLogPage, ChildDocument, ChildPage, Content, Document
from shared.documents.tree import Tree
from shared.documents.unit_of_work import DocumentHead
from shared.dynamodb import Keys
from shared.rpc import cursor as cursors
from shared.rpc.response_size import MAX_PAGE_BYTES, answer_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from shared.dynamodb import Item, Table

_HEADS_AT_ONCE: Final = 100
_LAST_REVISION: Final = 999_999_999_999
_LONGEST_SORT_KEY: Final = 1024

P = TypeVar("P", str, int)
T = TypeVar("T", ChildDocument, AuditEntry)


class DocumentQueries:
    """The documents of one tenant, to be read."""

    def __init__(self, table: Table, tenant_id: str) -> None:
        self._table = table
        self._tenant_id = tenant_id

    def document(self, document_id: str, revision: int | None = None) -> Document:
        """A document that is not deleted, as it is or as it was at a revision."""
        head = self.head(document_id)
        if head is None or head.deleted(timestamps.now()):
            raise errors.no_document(document_id)
        if revision is not None and revision != head.revision:
            head = self._as_it_was(head, revision)
        content = self._content(head)
        return Document(
            document_id=document_id,
            parent_id=head.parent_id,
            content=Content(content["mime_type"], BodyStore(self._table, self._tenant_id).text(content)),
            metadata=json.loads(content["metadata"]),
            is_human_readable=content["is_human_readable"],
            revision=head.revision,
            created_at=timestamps.to_iso(head.created_at),
            updated_at=timestamps.to_iso(head.updated_at),
            delete_at=_shown(head.delete_at),
        )

    def children(self, parent_id: str, limit: int, cursor: str | None) -> ChildPage:
        """The children of a parent that are not deleted, in order."""
        now = timestamps.now()
        if parent_id != keys.ROOT:
            position = Tree(self._table, self._tenant_id).find(parent_id)
            if position is None or position.deleted(now):
                raise errors.no_document(parent_id, "parent_id")
        after = cursors.decode(cursor, str)[0] if cursor else " "
        if not 0 < len(after) <= _LONGEST_SORT_KEY or not after.isascii():
            raise cursors.stale()
        chosen, more = _page(self._children(parent_id, after, limit, now), limit)
        return ChildPage([child for _, child in chosen], cursors.encode(chosen[-1][0]) if more else None)

    def history(self, document_id: str, limit: int, cursor: str | None) -> AuditLogPage:
        """The changes of a document, deleted or not, oldest first."""
        if self.head(document_id) is None:
            raise errors.no_document(document_id)
        after = cursors.decode(cursor, int)[0] if cursor else 0
        if not 0 <= after < _LAST_REVISION:
            raise cursors.stale()
        chosen, more = _page(self._entries(document_id, after, limit), limit)
        return AuditLogPage([entry for _, entry in chosen], cursors.encode(chosen[-1][0]) if more else None)

    def head(self, document_id: str) -> DocumentHead | None:
        """A document without its text, deleted or not, if it was ever created."""
        item = self._table.get(keys.document(self._tenant_id, document_id), keys.DOCUMENT)
        return DocumentHead.from_item(item) if item else None

    def heads(self, document_ids: Iterable[str]) -> dict[str, DocumentHead]:
        """Those of documents, deleted or not, that were ever created."""
        sought = [(keys.document(self._tenant_id, each), keys.DOCUMENT) for each in document_ids]
        return {head.document_id: head for head in map(DocumentHead.from_item, self._table.get_all(sought))}

    def body(self, head: DocumentHead) -> str:
        """The text of a document."""
        return BodyStore(self._table, self._tenant_id).text(self._content(head))

    def _content(self, head: DocumentHead) -> Item:
        partition = keys.document(self._tenant_id, head.document_id)
        content = self._table.get(partition, keys.content(head.content_revision))
        assert content is not None
        return content

    def _as_it_was(self, head: DocumentHead, revision: int) -> DocumentHead:
        entry = self._table.get(keys.document(self._tenant_id, head.document_id), keys.history(revision))
        if entry is None:
            raise errors.no_revision(head.document_id, revision, head.revision)
        return replace(
            head,
            revision=revision,
            content_revision=int(entry["content_revision"]),
            parent_id=entry["parent_id"],
            updated_at=int(entry["at"]),
            delete_at=int(entry["delete_at"]) if "delete_at" in entry else None,
        )

    def _children(self, parent_id: str, after: str, limit: int, now: int) -> Iterator[tuple[str, ChildDocument]]:
        """Living children after a sort key, each with its own."""
        partition = keys.children(self._tenant_id, parent_id)
        size = min(limit + 1, _HEADS_AT_ONCE)
        listed: list[Item] = [{"sk": after}]
        while listed:
            pages = self._table.query(partition, Keys.after(listed[-1]["sk"]), limit=size)
            listed = [item for page in pages for item in page]
            living = [each for each in listed if "delete_at" not in each or each["delete_at"] > now]
            heads = self.heads(each["document_id"] for each in living)
            for each in living:
                head = heads[each["document_id"]]
                # What has gone elsewhere since it was listed is not shown here.
                if head.parent_id == parent_id and not head.deleted(now):
                    yield each["sk"], _child(head)
            if len(listed) < size:
                return

    def _entries(self, document_id: str, after: int, limit: int) -> Iterator[tuple[int, AuditEntry]]:
        """Changes after a revision, each with its own."""
        bounds = Keys.between(keys.history(after + 1), keys.history(_LAST_REVISION))
        partition = keys.document(self._tenant_id, document_id)
        for page in self._table.query(partition, bounds, limit=limit + 1):
            for item in page:
                yield int(item["revision"]), _entry(item)


def _page(found: Iterator[tuple[P, T]], limit: int) -> tuple[list[tuple[P, T]], bool]:
    """As much of what was found as a page holds, and whether there is more."""
    chosen: list[tuple[P, T]] = []
    left = MAX_PAGE_BYTES
    for place, each in found:
        left -= answer_bytes(asdict(each))
        if len(chosen) == limit or (left < 0 and chosen):
            return chosen, True
        chosen.append((place, each))
    return chosen, False


def _child(head: DocumentHead) -> ChildDocument:
    return ChildDocument(
        document_id=head.document_id,
        parent_id=head.parent_id,
        mime_type=head.mime_type,
        metadata=json.loads(head.metadata),
        is_human_readable=head.is_human_readable,
        revision=head.revision,
        created_at=timestamps.to_iso(head.created_at),
        updated_at=timestamps.to_iso(head.updated_at),
        delete_at=_shown(head.delete_at),
    )


def _entry(item: Item) -> AuditEntry:
    return AuditEntry(
        revision=int(item["revision"]),
        from_revision=int(item["from_revision"]),
        action=item["action"],
        at=timestamps.to_iso(int(item["at"])),
        by=Actor(item["sub"], item["labels"]),
        correlation_id=item["correlation_id"],
        request_id=item.get("request_id"),
        fields=item.get("fields"),
        parent_id=item["parent_id"],
        delete_at=_shown(int(item["delete_at"]) if "delete_at" in item else None),
        deleted_by=item.get("deleted_by"),
        reason=item.get("reason"),
        together_with=item.get("together_with"),
    )


def _shown(moment: int | None) -> str | None:
    return None if moment is None else timestamps.to_iso(moment)
