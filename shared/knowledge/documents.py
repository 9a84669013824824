"""The documents of one collection: DynamoDB is the truth, the index follows.

A document's item is written first, under a condition on its revision, and then its passages are indexed as of that
revision; the index refuses what is older than what it has. Whoever finds a document that is not indexed as it is,
because a writer was killed or the index did not answer, indexes it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Literal

from shared.clock import now
from shared.dynamodb import ConditionFailed, Keys, Write
from shared.knowledge import keys
from shared.knowledge.errors import document_too_large, unreadable
from shared.knowledge.models import MAX_PATH_BYTES, MAX_TEXT_BYTES, StoredDocument, is_short
from shared.knowledge.passages import DocumentRef, Passage
from shared.knowledge.splitting import split
from shared.knowledge.text_store import TextStore
from shared.rpc import cursor as cursors
from shared.rpc.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from shared.dynamodb import Item, Table
    from shared.knowledge.index import PassageIndex
    from shared.knowledge.models import Collection, NewKnowledgeDocument, Outcome
    from shared.knowledge.splitting import Split

_ATTEMPTS: Final = 10


@dataclass(frozen=True, slots=True)
class PutResult:
    """What has become of a document that was brought in; `pending` where the index does not answer now."""

    outcome: Outcome
    chunks: int
    pending: bool = False


class CollectionDocuments:
    """The documents of one collection of a tenant."""

    def __init__(self, table: Table, tenant_id: str, collection: Collection, index: PassageIndex) -> None:
        self._table = table
        self._tenant_id = tenant_id
        self._collection = collection
        self._index = index
        self._partition = keys.documents(tenant_id, collection.id)
        self._texts = TextStore(table, tenant_id, collection.id)

    def put(self, new: NewKnowledgeDocument) -> PutResult:
        """Let the collection hold `new` under its path; where it does already, nothing is changed."""
        _require_storable(new)
        digest = new.hash or hashlib.sha256(new.text.encode("utf-8")).hexdigest()
        for _ in range(_ATTEMPTS):
            item = self._table.get(self._partition, new.path)
            if item and _is_same(item, digest, new):
                if new.tree not in ("", item["tree"]):
                    self._note(item, "tree", new.tree)
                if _is_indexed(item):
                    return PutResult("unchanged", int(item["chunks"]))
                return self._indexed(item, self._split(new), "updated")
            parts = self._split(new)
            if not parts.chunks:
                raise unreadable(new.path, "holds no text")
            try:
                written = self._write(new, digest, parts, item)
            except ConditionFailed:
                continue  # somebody else brought it in just now
            return self._indexed(written, parts, "updated" if item and not item.get("gone") else "added")
        raise Unavailable("Too many writers of one document at once.")

    def remove(self, path: str) -> bool:
        """Let the collection hold nothing under `path`; False where it holds nothing already."""
        item = self._item(path)
        if item is None or (item.get("gone") and _is_indexed(item)):
            return False
        if not item.get("gone"):
            revision = int(item["revision"]) + 1
            # Its revision stays, so that what is brought in under this path later is newer for the index too.
            gone = {
                "pk": self._partition,
                "sk": path,
                "revision": revision,
                "indexed_revision": 0,
                "gone": True,
                "at": now(),
            }
            try:
                self._table.write(Write("Put", gone, condition="revision = :read", values={":read": item["revision"]}))
            except ConditionFailed:
                return self.remove(path)
            self._texts.delete(path, item["text"])
            item = gone
        self._forget(item)
        return True

    def find(self, path: str) -> StoredDocument | None:
        """The document under `path`, if there is one."""
        item = self._item(path)
        return _stored(item) if item and not item.get("gone") else None

    def fields_of(self, field: Literal["hash", "revision"], paths: Iterable[str]) -> dict[str, Any]:
        """One thing about each of the documents that there are under `paths`."""
        items = self._table.get_all(
            ((self._partition, path) for path in dict.fromkeys(paths) if is_short(path)), ("sk", field, "gone")
        )
        return {item["sk"]: item[field] for item in items if not item.get("gone")}

    def page(self, limit: int, cursor: str | None = None) -> tuple[list[StoredDocument], str | None]:
        """At most `limit` documents from `cursor` on, by path."""
        after = cursors.decode(cursor, str)[0] if cursor else "\0"
        chosen: list[StoredDocument] = []
        for item in self._items(after):
            if len(chosen) == limit:
                return chosen, cursors.encode(chosen[-1].path)
            chosen.append(_stored(item))
        return chosen, None

    def stored(self) -> Iterator[StoredDocument]:
        """Return every document, by path."""
        return map(_stored, self._items("\0"))

    def size(self) -> tuple[int, int]:
        """How many documents and chunks there are."""
        chunks = [int(item["chunks"]) for item in self._items("\0")]
        return len(chunks), sum(chunks)

    def reindex(self, path: str, *, anew: bool = False) -> bool:
        """Index the document as it is now, unless it is already and `anew` does not ask for it; whether it was done."""
        item = self._item(path)
        if item is None or (_is_indexed(item) and not anew):
            return False
        if item.get("gone"):
            self._forget_now(item)
            return True
        text = self._texts.read(path, item["text"])
        if text is None:
            return False  # replaced meanwhile, by somebody who indexes it
        self._index_now(item, split(path, text, read_as=_read_as(item["origin"], path)))
        return True

    def rebuild(self, path: str, *, anew: bool) -> bool:
        """Index the document as it is now where the index does not hold it so, or `anew` asks for it."""
        item = self._item(path)
        held = item is not None and self._index.holds(self._document(path), int(item["revision"]))
        return self.reindex(path, anew=anew or not held)

    def all_paths(self) -> Iterator[str]:
        """The paths of all documents, of those that are gone too."""
        for page in self._table.query(self._partition, Keys.after("\0")):
            yield from (item["sk"] for item in page)

    def _item(self, path: str) -> Item | None:
        return self._table.get(self._partition, path) if is_short(path) else None

    def _items(self, after: str) -> Iterator[Item]:
        for page in self._table.query(self._partition, Keys.after(after)):
            yield from (item for item in page if not item.get("gone"))

    def _split(self, new: NewKnowledgeDocument) -> Split:
        try:
            return split(new.path, new.text, read_as=_read_as(new.origin, new.path))
        except ValueError as refusal:
            raise unreadable(new.path, str(refusal)) from None

    def _write(self, new: NewKnowledgeDocument, digest: str, parts: Split, old: Item | None) -> Item:
        at = now()
        item: dict[str, Any] = {
            "pk": self._partition,
            "sk": new.path,
            "title": new.title or parts.title,
            "given_title": new.title,
            "hash": digest,
            "text": self._texts.keep(new.path, new.text),
            "chunks": len(parts.chunks),
            "bytes": len(new.text.encode("utf-8")),
            "origin": new.origin,
            "tree": new.tree,
            "revision": int(old["revision"]) + 1 if old else 1,
            "indexed_revision": 0,
            "created_at": at if old is None or old.get("gone") else old["created_at"],
            "updated_at": at,
        }
        unchanged = "revision = :read" if old else "attribute_not_exists(pk)"
        read = {":read": old["revision"]} if old else {}
        try:
            self._table.write(Write("Put", item, condition=unchanged, values=read))
        except ConditionFailed:
            self._texts.delete(new.path, item["text"])
            raise
        if old and "text" in old:
            self._texts.delete(new.path, old["text"])
        return item

    def _indexed(self, item: Item, parts: Split, outcome: Outcome) -> PutResult:
        try:
            self._index_now(item, parts)
        except Unavailable:
            self._await_index(item)
            return PutResult(outcome, len(parts.chunks), pending=True)
        return PutResult(outcome, len(parts.chunks))

    def _index_now(self, item: Item, parts: Split) -> None:
        revision = int(item["revision"])
        document = self._document(item["sk"])
        passages = [
            Passage(
                document=document,
                ordinal=ordinal,
                text=chunk.text,
                revision=revision,
                title=item["title"],
                source=item["sk"],
                heading_path=chunk.heading_path,
                content_type=chunk.content_type,
            )
            for ordinal, chunk in enumerate(parts.chunks)
        ]
        self._index.replace(document, revision, passages)
        self._note_indexed(item)

    def _forget(self, item: Item) -> None:
        try:
            self._forget_now(item)
        except Unavailable:
            self._await_index(item)

    def _forget_now(self, item: Item) -> None:
        self._index.delete(self._document(item["sk"]), int(item["revision"]))
        self._note_indexed(item)

    def _note_indexed(self, item: Item) -> None:
        self._note(item, "indexed_revision", int(item["revision"]))

    def _note(self, item: Item, attribute: str, value: Any) -> None:
        key = {"pk": self._partition, "sk": item["sk"]}
        noting = Write(
            "Update",
            key,
            expression="SET #attribute = :value",
            condition="revision = :revision",
            values={":value": value, ":revision": int(item["revision"])},
            names={"#attribute": attribute},
        )
        try:
            self._table.write(noting)
        except ConditionFailed:
            return  # newer by now, and indexed by whoever wrote that

    def _await_index(self, item: Item) -> None:
        waiting = {
            "pk": keys.work(self._tenant_id),
            "sk": keys.awaiting_index(self._collection.id, item["sk"]),
            "collection": self._collection.name,
            "path": item["sk"],
            "at": now(),
        }
        self._table.write(Write("Put", waiting))

    def _document(self, path: str) -> DocumentRef:
        return DocumentRef(self._tenant_id, self._collection.id, path)


def _require_storable(new: NewKnowledgeDocument) -> None:
    if not is_short(new.path):
        raise unreadable(new.path[:80] + "…", f"has a path of more than {MAX_PATH_BYTES} bytes")
    if len(new.text.encode("utf-8")) > MAX_TEXT_BYTES:
        raise document_too_large(new.path, MAX_TEXT_BYTES)


def _read_as(origin: str, path: str) -> Any:
    """Text that was added by itself is Markdown; a file is what its name says, a page by its address too."""
    if origin == "text" or (not PurePosixPath(path).suffix and "://" in path):
        return "markdown"
    return None


def _is_same(item: Item, digest: str, new: NewKnowledgeDocument) -> bool:
    return not item.get("gone") and item["hash"] == digest and item["given_title"] == new.title


def _is_indexed(item: Item) -> bool:
    return int(item["indexed_revision"]) == int(item["revision"])


def _stored(item: Item) -> StoredDocument:
    return StoredDocument(
        path=item["sk"],
        title=item["title"],
        hash=item["hash"],
        chunks=int(item["chunks"]),
        bytes=int(item["bytes"]),
        origin=item["origin"],
        tree=item["tree"],
        revision=int(item["revision"]),
        indexed=_is_indexed(item),
        created_at=item["created_at"],
        updated_at=item["updated_at"],
    )
