"""Creating and updating documents."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from shared.documents import keys, refusals
from shared.documents.bodies import Bodies
from shared.documents.changes import Head, Plan
from shared.documents.places import Place, Places, listed
from shared.documents.tree import MAX_DEPTH, Position
from shared.dynamodb import Write
from shared.rpc.errors import FieldProblem, InvalidParams
from shared.rpc.text import compact

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shared.documents.changes import Changes
    from shared.documents.models import MimeType, PatchField, Written
    from shared.documents.requests import Request
    from shared.dynamodb import Item


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
    """What a document is to become; what is None stays, but where the mask names it."""

    mime_type: MimeType | None = None
    body: str | None = None
    metadata: dict[str, Any] | None = None
    is_human_readable: bool | None = None
    mask: Sequence[PatchField] | None = None

    def applied(self) -> Patch:
        """The patch as far as its mask lets it apply; what the mask names and the patch lacks is cleared."""
        mask = self.mask
        if mask is None:
            return self
        missing: list[FieldProblem] = [
            FieldProblem(field=f"patch.{name}", message="is named by update_mask, and cannot be cleared")
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
        """The names of what it changes."""
        given = {"content": self.body, "metadata": self.metadata, "is_human_readable": self.is_human_readable}
        return [name for name, value in given.items() if value is not None]


def create(changes: Changes, request: Request, new: NewDocument) -> Written:
    """Create a document as the last child of its parent."""
    body = _kept_once(changes, new.body)

    def prepare(now: int) -> Plan:
        if changes.table.get(**changes.key(new.document_id)):
            raise refusals.already_exists(new.document_id)
        chain = changes.tree.chain(new.parent_id, now)
        if len(chain) == MAX_DEPTH:
            raise refusals.too_deep(new.parent_id, MAX_DEPTH)
        head = Head(
            document_id=new.document_id,
            parent_id=new.parent_id,
            revision=1,
            content_revision=1,
            mime_type=new.mime_type,
            metadata=compact(new.metadata),
            is_human_readable=new.is_human_readable,
            created_at=now if new.created_at is None else new.created_at,
            updated_at=now,
            delete_at=chain[0].delete_at if chain else None,
        )
        order_key = Places(changes.tree, new.parent_id, new.document_id).key(Place(), now)
        position = Position(
            document_id=new.document_id,
            parent_id=new.parent_id,
            order_key=order_key,
            version=1,
            arrivals=0,
            height=0,
            delete_at=head.delete_at,
            deletion=chain[0].deletion if head.delete_at is not None else None,
        )
        writes = [
            Write("Put", changes.key(new.document_id) | head.as_item(), condition="attribute_not_exists(pk)"),
            Write("Put", changes.tree.key(new.document_id) | position.as_item()),
            listed(changes.tree, position),
            Write("Put", _content(changes, head) | body()),
            changes.logged(request, head, now, from_revision=0),
            *changes.tree.attachment(chain, 0),
        ]
        return Plan(writes, head.written())

    return changes.carry_out(request, new.document_id, prepare)


def update(
    changes: Changes,
    request: Request,
    document_id: str,
    patch: Patch,
    last_known_revision: int | None = None,
) -> Written:
    """Apply a patch to a document, if it still is at the revision that the caller knows."""
    body = None if patch.body is None else _kept_once(changes, patch.body)

    def prepare(now: int) -> Plan:
        item = changes.table.get(**changes.key(document_id))
        old = Head.of(item) if item else None
        if old is None or old.deleted(now):
            raise refusals.no_document(document_id)
        applied = patch.applied()
        if not applied.fields():
            raise InvalidParams(FieldProblem(field="patch", message="holds nothing to apply"))
        if last_known_revision is not None and last_known_revision != old.revision:
            raise refusals.stale_revision(document_id, last_known_revision, old.revision)
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
        held = body() if body and applied.body is not None else _held(changes, old)
        writes = [
            changes.revised(old, head, now),
            Write("Put", _content(changes, head) | held),
            changes.logged(request, head, now, from_revision=old.revision, fields=applied.fields()),
        ]
        return Plan(writes, head.written())

    return changes.carry_out(request, document_id, prepare)


def _kept_once(changes: Changes, text: str) -> Callable[[], dict[str, Any]]:
    """What an item needs to hold `text`, kept when it is first asked for: a refused write keeps nothing."""
    return cache(lambda: Bodies(changes.table, changes.tenant_id).keep(text))


def _content(changes: Changes, head: Head) -> Item:
    return {
        "pk": keys.document(changes.tenant_id, head.document_id),
        "sk": keys.content(head.revision),
        "mime_type": head.mime_type,
        "metadata": head.metadata,
        "is_human_readable": head.is_human_readable,
    }


def _searchable(head: Head) -> tuple[Any, ...]:
    """What is searched of a document beside its text."""
    metadata = json.loads(head.metadata)
    return head.mime_type, metadata.get("title"), metadata.get("tags")


def _held(changes: Changes, old: Head) -> dict[str, Any]:
    """What holds the body that a document has already."""
    item = changes.table.get(keys.document(changes.tenant_id, old.document_id), keys.content(old.content_revision))
    assert item is not None
    return {name: item[name] for name in ("body", "body_digest") if name in item}
