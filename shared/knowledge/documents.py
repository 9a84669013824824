"""The documents of one collection. DynamoDB is the source of truth; the index follows.

A document's item is written first, conditionally on its revision. Then its passages are indexed at that revision;
the index refuses passages older than its own. A document can stay unindexed if a writer is killed or the index is
unavailable; the next writer or worker that finds it indexes it.
"""

from __future__ import annotations

import hashlib
import secrets
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Literal

from shared.aws.blob_store import BlobStore, compress
from shared.aws.dynamodb import ConditionFailed, Keys, Write, from_item, optimistic_retry
from shared.knowledge import keys
from shared.knowledge.errors import document_too_large, unreadable
from shared.knowledge.models import MAX_PATH_BYTES, MAX_TEXT_BYTES, StoredDocument, is_short
from shared.platform.clock import now
from shared.rpc import cursor as cursors
from shared.rpc.errors import Unavailable
from shared.search.passages import DocumentRef
from shared.search.splitting import split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from shared.aws.dynamodb import Item, Table
    from shared.knowledge.models import Collection, NewKnowledgeDocument, Outcome
    from shared.search.index import PassageIndex
    from shared.search.passages import Passage
    from shared.search.splitting import Split

_ALL: Final = Keys.after("\0")
_LAST_CHARACTER: Final = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class PutResult:
    """The outcome of storing a document. `pending` if the index is unavailable."""

    outcome: Outcome
    chunks: int
    pending: bool = False


class CollectionDocuments:
    """The documents of one collection of a tenant."""

    def __init__(
        self, table: Table, tenant_id: str, collection: Collection, index: PassageIndex, *, job: str = ""
    ) -> None:
        self._job = job
        self._table = table
        self._tenant_id = tenant_id
        self._collection = collection
        self._index = index
        self._partition = keys.partition(tenant_id, "documents", collection.id)
        self._texts = _texts(table, tenant_id, collection)

    def put(self, new: NewKnowledgeDocument) -> PutResult:
        """Store `new` under its path. Change nothing if the same document is stored already."""
        if not is_short(new.path):
            raise unreadable(new.path[:80] + "…", f"has a path of more than {MAX_PATH_BYTES} bytes")
        if len(new.text.encode("utf-8")) > MAX_TEXT_BYTES:
            raise document_too_large(new.path, MAX_TEXT_BYTES)
        digest = new.hash or hashlib.sha256(new.text.encode("utf-8")).hexdigest()
        return optimistic_retry(lambda: self._put(new, digest), exhausted=_too_many_writers())

    def _put(self, new: NewKnowledgeDocument, digest: str) -> PutResult:
        item = self._table.get(self._partition, new.path)
        if item and _is_same(item, digest, new):
            if new.tree not in ("", item["tree"]):
                self._set_attribute(item, "tree", new.tree)
            if _is_indexed(item):
                return PutResult("unchanged", item["chunks"])
            return self._index_or_queue(item, self._split(new), "updated")
        parts = self._split(new)
        if not parts.chunks:
            raise unreadable(new.path, "holds no text")
        outcome: Outcome = "updated" if item and not item.get("gone") else "added"
        written = self._write(new, digest, parts, item, self._mark(outcome))
        return self._index_or_queue(written, parts, outcome)

    def _mark(self, change: str) -> dict[str, str]:
        """Return the fields that tell this job, after a crash, that the change is its own."""
        return {"job": self._job, "job_change": change} if self._job else {}

    def changes_of_job(self) -> dict[str, str]:
        """Return the changes that this job has made before: by path, `added`, `updated` or `removed`."""
        fields = ("sk", "job", "job_change")
        items = (item for page in self._table.query(self._partition, _ALL, fields=fields) for item in page)
        return {item["sk"]: item["job_change"] for item in items if item.get("job") == self._job}

    def remove(self, path: str) -> bool:
        """Delete the document under `path`. Return False if there is none."""
        return optimistic_retry(lambda: self._remove(path), exhausted=_too_many_writers())

    def _remove(self, path: str) -> bool:
        item = self._item(path)
        if item is None or (item.get("gone") and _is_indexed(item)):
            return False
        if not item.get("gone"):
            # The tombstone keeps the revision, so that a later document under this path is newer for the index too.
            tombstone = {
                "pk": self._partition,
                "sk": path,
                "revision": item["revision"] + 1,
                "indexed_revision": 0,
                "gone": True,
                "at": now(),
            } | self._mark("removed")
            unchanged = {":read": item["revision"]}
            self._table.write(Write("Put", tombstone, condition="revision = :read", values=unchanged))
            self._texts.delete(path, item["text"])
            item = tombstone
        self._now_or_queued(item, lambda: self._delete_from_index(item))
        return True

    def find(self, path: str) -> StoredDocument | None:
        """Return the document under `path`, if there is one."""
        item = self._item(path)
        return _stored(item) if item and not item.get("gone") else None

    def passages(self, document: StoredDocument, start: int, stop: int) -> list[Passage]:
        """Return the indexed passages of this revision of the document, from position `start` to before `stop`."""
        indexed = self._index.passages(self._document(document.path), range(start, stop))
        return [each for each in indexed if each.revision == document.revision]

    def read_field(self, field: Literal["hash", "revision"], paths: Iterable[str]) -> dict[str, Any]:
        """Return one attribute of each existing document under `paths`."""
        items = self._table.get_all(
            ((self._partition, path) for path in dict.fromkeys(paths) if is_short(path)), ("sk", field, "gone")
        )
        return {item["sk"]: item[field] for item in items if not item.get("gone")}

    def page(self, limit: int, cursor: str | None = None, prefix: str = "") -> tuple[list[StoredDocument], str | None]:
        """Return at most `limit` documents below `prefix` after `cursor`, ordered by path, and the next cursor."""
        if not is_short(prefix):
            return [], None
        after = cursors.decode_sort_key(cursor) if cursor else "\0"
        if not is_short(after):
            raise cursors.stale()
        documents: list[StoredDocument] = []
        for item in self._items(Keys.between(max(f"{after}\0", prefix), f"{prefix}{_LAST_CHARACTER}")):
            if len(documents) == limit:
                return documents, cursors.encode(documents[-1].path)
            documents.append(_stored(item))
        return documents, None

    def stored(self) -> Iterator[StoredDocument]:
        """Return every document, by path."""
        return map(_stored, self._items(_ALL))

    def size(self) -> tuple[int, int]:
        """Return the number of documents and of chunks."""
        chunks = [item["chunks"] for item in self._items(_ALL, ("chunks", "gone"))]
        return len(chunks), sum(chunks)

    def reindex(self, path: str, *, force: bool = False) -> bool:
        """Index the document if it is not indexed or `force` is True. Return True if it was indexed now."""
        item = self._item(path)
        if item is None or (_is_indexed(item) and not force):
            return False
        if item.get("gone"):
            self._delete_from_index(item)
            return True
        text = self._texts.read(path, item["text"])
        if text is None:
            return False  # replaced in the meantime; the other writer indexes it
        self._index_now(item, split(path, text, read_as=_read_as(item["origin"], path)), resume=not force)
        return True

    def rebuild(self, path: str, *, force: bool) -> bool:
        """Index the document as stored if the index does not hold this revision, or if `force` is True."""
        item = self._item(path)
        is_current = item is not None and self._index.holds(self._document(path), item["revision"])
        return self.reindex(path, force=force or not is_current)

    def paths(self) -> Iterator[str]:
        """Yield the paths of all documents, including deleted ones."""
        for page in self._table.query(self._partition, _ALL):
            yield from (item["sk"] for item in page)

    def _item(self, path: str) -> Item | None:
        return self._table.get(self._partition, path) if is_short(path) else None

    def _items(self, keys_: Keys, fields: Sequence[str] = ()) -> Iterator[Item]:
        for page in self._table.query(self._partition, keys_, fields=fields):
            yield from (item for item in page if not item.get("gone"))

    def _split(self, new: NewKnowledgeDocument) -> Split:
        try:
            return split(new.path, new.text, read_as=_read_as(new.origin, new.path))
        except ValueError as error:
            raise unreadable(new.path, str(error)) from None

    def _write(
        self, new: NewKnowledgeDocument, digest: str, parts: Split, old: Item | None, mark: dict[str, str]
    ) -> Item:
        at = now()
        text_id = secrets.token_hex(8)
        self._texts.write(compress(new.text), new.path, text_id)
        item: dict[str, Any] = {
            "pk": self._partition,
            "sk": new.path,
            "title": new.title or parts.title,
            "given_title": new.title,
            "hash": digest,
            "text": text_id,
            "chunks": len(parts.chunks),
            "bytes": len(new.text.encode("utf-8")),
            "origin": new.origin,
            "tree": new.tree,
            "revision": old["revision"] + 1 if old else 1,
            "indexed_revision": 0,
            "created_at": at if old is None or old.get("gone") else old["created_at"],
            "updated_at": at,
        } | mark
        unchanged = "revision = :read" if old else "attribute_not_exists(pk)"
        values = {":read": old["revision"]} if old else {}
        try:
            self._table.write(Write("Put", item, condition=unchanged, values=values))
        except ConditionFailed:
            self._texts.delete(new.path, item["text"])
            raise
        if old and "text" in old:
            self._texts.delete(new.path, old["text"])
        return item

    def _index_or_queue(self, item: Item, parts: Split, outcome: Outcome) -> PutResult:
        is_indexed = self._now_or_queued(item, lambda: self._index_now(item, parts))
        return PutResult(outcome, len(parts.chunks), pending=not is_indexed)

    def _index_now(self, item: Item, parts: Split, *, resume: bool = True) -> None:
        document = self._document(item["sk"])
        passages = parts.passages(document, item["revision"], item["title"])
        self._index.replace(document, item["revision"], passages, resume=resume)
        self._mark_indexed(item)

    def _delete_from_index(self, item: Item) -> None:
        self._index.delete(self._document(item["sk"]), item["revision"])
        self._mark_indexed(item)

    def _mark_indexed(self, item: Item) -> None:
        self._set_attribute(item, "indexed_revision", item["revision"])

    def _set_attribute(self, item: Item, attribute: str, value: Any) -> None:
        key = {"pk": self._partition, "sk": item["sk"]}
        update = Write(
            "Update",
            key,
            expression="SET #attribute = :value",
            condition="revision = :revision",
            values={":value": value, ":revision": item["revision"]},
            names={"#attribute": attribute},
        )
        with suppress(ConditionFailed):  # a newer revision was written, and its writer indexes it
            self._table.write(update)

    def _now_or_queued(self, item: Item, change_index: Callable[[], None]) -> bool:
        """Change the index. If it is unavailable, queue the work and return False."""
        try:
            change_index()
        except Unavailable:
            work_item = {
                "pk": keys.partition(self._tenant_id, "work"),
                "sk": keys.awaiting_index(self._collection.id, item["sk"]),
                "collection": self._collection.name,
                "path": item["sk"],
                "at": now(),
            }
            self._table.write(Write("Put", work_item))
            return False
        return True

    def _document(self, path: str) -> DocumentRef:
        return DocumentRef(self._tenant_id, self._collection.id, path)


def read_text(table: Table, tenant_id: str, collection: Collection, path: str) -> tuple[StoredDocument, str] | None:
    """Return the document under `path` and its text, if there is one. This needs no index."""
    if not is_short(path):
        return None
    partition = keys.partition(tenant_id, "documents", collection.id)

    def read() -> tuple[StoredDocument, str] | None:
        item = table.get(partition, path)
        if item is None or item.get("gone"):
            return None
        text = _texts(table, tenant_id, collection).read(path, item["text"])
        if text is None:
            raise ConditionFailed  # replaced in the meantime
        return _stored(item), text

    return optimistic_retry(read, exhausted=_too_many_writers())


def _texts(table: Table, tenant_id: str, collection: Collection) -> BlobStore:
    return BlobStore(table, partial(keys.text, tenant_id, collection.id), keys.PART_DIGITS)


def _too_many_writers() -> Unavailable:
    return Unavailable("Too many concurrent writers of one document.")


def _read_as(origin: str, path: str) -> Any:
    """Return the format to read a document as: added text and addresses without a suffix are Markdown."""
    if origin == "text" or (not PurePosixPath(path).suffix and "://" in path):
        return "markdown"
    return None


def _is_same(item: Item, digest: str, new: NewKnowledgeDocument) -> bool:
    return not item.get("gone") and item["hash"] == digest and item["given_title"] == new.title


def _is_indexed(item: Item) -> bool:
    return bool(item["indexed_revision"] == item["revision"])


def _stored(item: Item) -> StoredDocument:
    return from_item(StoredDocument, item | {"path": item["sk"], "indexed": _is_indexed(item)})
