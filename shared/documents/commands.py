"""Commands that create and update documents."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from shared.blob_store import BlobStore, compress
from shared.documents import errors, keys
from shared.documents.sibling_order import SiblingOrder, SiblingPosition, listing_write
from shared.documents.tree import MAX_DEPTH, TreePosition
from shared.documents.unit_of_work import DocumentHead, WritePlan
from shared.dynamodb import Write
from shared.rpc.errors import FieldProblem, InvalidParams
from shared.rpc.strict_json import compact

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shared.documents.idempotency import WriteRequest
    from shared.documents.models import MimeType, PatchField, WriteResult
    from shared.documents.unit_of_work import UnitOfWork
    from shared.dynamodb import Item

_INLINE_BYTES: Final = 64 * 1024
"""A larger body would burden a transaction, which costs twice, and one partition."""


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document to be created."""

    document_id: str
    parent_id: str
    mime_type: MimeType
    body: str
    metadata: dict[str, Any]
    is_human_readable: bool
    created_at: int | None = None


@dataclass(frozen=True, slots=True)
class Patch:
    """The changes to a document. None leaves a field as it is, unless the mask names it."""

    mime_type: MimeType | None = None
    body: str | None = None
    metadata: dict[str, Any] | None = None
    is_human_readable: bool | None = None
    mask: Sequence[PatchField] | None = None

    def applied(self) -> Patch:
        """Return the patch restricted to its mask. A masked field without a value is cleared."""
        mask = self.mask
        if mask is None:
            return self
        missing: list[FieldProblem] = [
            FieldProblem(field=f"patch.{name}", message="is named by update_mask and cannot be cleared")
            for name, value in (("content", self.body), ("is_human_readable", self.is_human_readable))
            if name in mask and value is None
        ]
        if missing:
            raise InvalidParams(*missing)
        return Patch(
            mime_type=self.mime_type if "content" in mask else None,
            body=self.body if "content" in mask else None,
            metadata=(self.metadata or {}) if "metadata" in mask else None,
            is_human_readable=self.is_human_readable if "is_human_readable" in mask else None,
        )

    def fields(self) -> list[str]:
        """Return the names of the fields that it changes."""
        values = {"content": self.body, "metadata": self.metadata, "is_human_readable": self.is_human_readable}
        return [name for name, value in values.items() if value is not None]


def create(work: UnitOfWork, request: WriteRequest, new: NewDocument) -> WriteResult:
    """Create a document as the last child of its parent."""
    body = _deferred_body(work, new.body)

    def plan(now: int) -> WritePlan:
        if work.table.get(**work.key(new.document_id)):
            raise errors.already_exists(new.document_id)
        ancestors = work.tree.ancestors(new.parent_id, now)
        if len(ancestors) == MAX_DEPTH:
            raise errors.too_deep(new.parent_id, MAX_DEPTH)
        head = DocumentHead(
            document_id=new.document_id,
            parent_id=new.parent_id,
            revision=1,
            content_revision=1,
            mime_type=new.mime_type,
            metadata=compact(new.metadata),
            is_human_readable=new.is_human_readable,
            created_at=now if new.created_at is None else new.created_at,
            updated_at=now,
            delete_at=ancestors[0].delete_at if ancestors else None,
        )
        order_key = SiblingOrder(work.tree, new.parent_id, new.document_id).key(SiblingPosition(), now)
        position = TreePosition(
            document_id=new.document_id,
            parent_id=new.parent_id,
            order_key=order_key,
            version=1,
            arrivals=0,
            height=0,
            delete_at=head.delete_at,
            deletion=ancestors[0].deletion if head.delete_at is not None else None,
        )
        writes = [
            Write("Put", work.key(new.document_id) | head.as_item(), condition="attribute_not_exists(pk)"),
            Write("Put", work.tree.key(new.document_id) | position.as_item()),
            listing_write(work.tree, position),
            Write("Put", _content_item(work, head) | body()),
            work.audit_entry(request, head, now, from_revision=0),
            *work.tree.attachment_writes(ancestors, 0),
        ]
        return WritePlan(writes, head.write_result())

    return work.execute(request, new.document_id, plan)


def update(
    work: UnitOfWork,
    request: WriteRequest,
    document_id: str,
    patch: Patch,
    last_known_revision: int | None = None,
) -> WriteResult:
    """Apply a patch to a document, if it is still at the revision that the caller knows."""
    new_body = None if patch.body is None else _deferred_body(work, patch.body)

    def plan(now: int) -> WritePlan:
        item = work.table.get(**work.key(document_id))
        old = DocumentHead.from_item(item) if item else None
        if old is None or old.deleted(now):
            raise errors.no_document(document_id)
        applied = patch.applied()
        if not applied.fields():
            raise InvalidParams(FieldProblem(field="patch", message="changes nothing"))
        if last_known_revision is not None and last_known_revision != old.revision:
            raise errors.stale_revision(document_id, last_known_revision, old.revision)
        revision = old.revision + 1
        head = replace(
            old,
            revision=revision,
            content_revision=revision,
            searchable_since=None,
            mime_type=applied.mime_type or old.mime_type,
            metadata=old.metadata if applied.metadata is None else compact(applied.metadata),
            is_human_readable=(
                old.is_human_readable if applied.is_human_readable is None else applied.is_human_readable
            ),
            updated_at=now,
        )
        if applied.body is None and _searchable(head) == _searchable(old):
            head = replace(head, searchable_since=old.searchable_revision)
        body = new_body() if new_body and applied.body is not None else _current_body(work, old)
        writes = [
            work.head_update(old, head, now),
            Write("Put", _content_item(work, head) | body),
            work.audit_entry(request, head, now, from_revision=old.revision, fields=applied.fields()),
        ]
        return WritePlan(writes, head.write_result())

    return work.execute(request, document_id, plan)


def _deferred_body(work: UnitOfWork, text: str) -> Callable[[], dict[str, Any]]:
    """Return a function that stores a body on its first call, so that a rejected write stores nothing."""
    return cache(lambda: _store_body(work, text))


def _store_body(work: UnitOfWork, text: str) -> dict[str, Any]:
    """Return the attributes with which an item holds a body. A large body is written as a blob first."""
    blob = compress(text)
    if len(blob) <= _INLINE_BYTES:
        return {"body": blob}
    # The blob is named by its content, so it needs no clean-up: a repeated write finds its own.
    digest = hashlib.sha256(blob).hexdigest()
    BlobStore(work.table, partial(keys.body, work.tenant_id), keys.PART_DIGITS).write(blob, digest)
    return {"body_digest": digest}


def _content_item(work: UnitOfWork, head: DocumentHead) -> Item:
    return {
        "pk": keys.document(work.tenant_id, head.document_id),
        "sk": keys.content(head.revision),
        "mime_type": head.mime_type,
        "metadata": head.metadata,
        "is_human_readable": head.is_human_readable,
    }


def _searchable(head: DocumentHead) -> tuple[Any, ...]:
    """Return the searchable attributes of a document other than its text."""
    metadata = json.loads(head.metadata)
    return head.mime_type, metadata.get("title"), metadata.get("tags")


def _current_body(work: UnitOfWork, old: DocumentHead) -> dict[str, Any]:
    """Return the attributes that hold the current body of a document."""
    item = work.table.get(keys.document(work.tenant_id, old.document_id), keys.content(old.content_revision))
    assert item is not None
    return {name: item[name] for name in ("body", "body_digest") if name in item}
