"""Commands that write the next revision of a document: its text, metadata or display flag."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, get_args

from shared.aws.dynamodb import Write, from_item
from shared.documents import errors
from shared.documents.content_items import content_item, deferred_body, stored_body
from shared.documents.models import PatchField, require_metadata
from shared.documents.names import word_writes
from shared.documents.queries import DocumentQueries
from shared.documents.unit_of_work import DocumentHead, Patience, WritePlan
from shared.platform.locks import NamedLocks
from shared.platform.telemetry import seconds_left
from shared.rpc.errors import FieldProblem, InvalidParams, OutOfTime
from shared.rpc.strict_json import compact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.documents.edits import Edit
    from shared.documents.idempotency import WriteRequest
    from shared.documents.models import MimeType, WriteResult
    from shared.documents.unit_of_work import UnitOfWork

_EDIT_PATIENCE: Final = Patience(attempts=100, seconds=20.0)
"""Edits of many writers come one after another: the last of them waits for all others."""
_editing: Final[NamedLocks[tuple[str, str]]] = NamedLocks()
"""The locks of documents, by tenant and id, that are being edited: two threads of this process need not collide."""


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


def update(
    work: UnitOfWork,
    request: WriteRequest,
    document_id: str,
    patch: Patch,
    last_known_revision: int | None = None,
) -> WriteResult:
    """Apply a patch to a document, if it is still at the revision that the caller knows."""
    new_body = None if patch.body is None else deferred_body(work, patch.body)

    def prepare(now: int) -> WritePlan:
        old = _known_head(work, document_id, last_known_revision, now)
        applied = patch.applied()
        if not applied.fields():
            raise InvalidParams(FieldProblem(field="patch", message="changes nothing"))
        head = old.revised(
            now,
            mime_type=applied.mime_type or old.mime_type,
            metadata=old.metadata if applied.metadata is None else compact(applied.metadata),
            is_human_readable=(
                old.is_human_readable if applied.is_human_readable is None else applied.is_human_readable
            ),
        )
        body = new_body() if new_body and applied.body is not None else None
        return _revision_plan(work, request, old, head, body, fields=applied.fields())

    return work.execute(request, document_id, prepare)


def edit(
    work: UnitOfWork,
    request: WriteRequest,
    document_id: str,
    edits: Sequence[Edit],
    last_known_revision: int | None = None,
) -> WriteResult:
    """Apply all edits to a document in order, or none. Another writer's change does not disturb them."""

    def prepare(now: int) -> WritePlan:
        old = _known_head(work, document_id, last_known_revision, now)
        return _edit_plan(work, request, old, edits, now)

    lock = _editing.of((work.tenant_id, document_id))
    waits = lock.acquire(timeout=max(0.0, min(_EDIT_PATIENCE.seconds, seconds_left())))
    if not waits:
        raise errors.too_busy(document_id)
    try:
        return work.execute(request, document_id, prepare, patience=_EDIT_PATIENCE)
    finally:
        lock.release()


def _known_head(work: UnitOfWork, document_id: str, last_known_revision: int | None, now: int) -> DocumentHead:
    """Return a document that is not deleted and, if a revision is given, still at this revision."""
    item = work.table.get(**work.key(document_id))
    head = from_item(DocumentHead, item) if item else None
    if head is None or head.deleted(now):
        raise errors.no_document(document_id)
    if last_known_revision is not None and last_known_revision != head.revision:
        raise errors.stale_revision(document_id, last_known_revision, head.revision)
    return head


def _edit_plan(
    work: UnitOfWork, request: WriteRequest, old: DocumentHead, edits: Sequence[Edit], now: int
) -> WritePlan:
    if edits[0].restore_revision is not None:
        return _restoration_plan(work, request, old, edits[0].restore_revision, now)
    from shared.documents.edits import edit_metadata, edit_text, summary

    changes: list[str] = []
    metadata, text = json.loads(old.metadata), None
    fields: dict[str, None] = {}
    for number, each in enumerate(edits):
        if seconds_left() <= 0:
            raise OutOfTime
        if each.metadata is not None:
            metadata, change = edit_metadata(metadata, each.metadata)
            require_metadata(metadata, f"edits.{number}.metadata")
        else:
            text = DocumentQueries(work.table, work.tenant_id).body(old) if text is None else text
            text, change = edit_text(text, old.mime_type, each, f"edits.{number}")
        fields["content" if each.metadata is None else "metadata"] = None
        changes.append(change)
    body = None if text is None else deferred_body(work, text)()
    head = old.revised(now, metadata=compact(metadata))
    line = summary(changes, text)
    return _revision_plan(work, request, old, head, body, fields=list(fields), changes=line)


def _restoration_plan(work: UnitOfWork, request: WriteRequest, old: DocumentHead, revision: int, now: int) -> WritePlan:
    """Plan a revision with the text, metadata and flag of an earlier one."""
    content = DocumentQueries(work.table, work.tenant_id).content(old, revision)
    head = old.revised(now, **{name: content[name] for name in ("mime_type", "metadata", "is_human_readable")})
    line = f"restored revision {revision}"
    fields = list(get_args(PatchField))
    return _revision_plan(work, request, old, head, stored_body(content), fields=fields, changes=line)


def _revision_plan(
    work: UnitOfWork,
    request: WriteRequest,
    old: DocumentHead,
    changed: DocumentHead,
    body: dict[str, Any] | None,
    **details: Any,
) -> WritePlan:
    """Plan the next revision, `changed`. `body` holds its new text; without it the text is as before."""
    head = replace(changed, content_revision=changed.revision, searchable_since=None)
    if body is None:
        body = stored_body(DocumentQueries(work.table, work.tenant_id).content(old))
        if _searchable(head) == _searchable(old):
            head = replace(head, searchable_since=old.searchable_revision)
    writes = [
        work.head_update(old, head, head.updated_at),
        Write("Put", content_item(work, head) | body),
        work.audit_entry(request, head, head.updated_at, from_revision=old.revision, **details),
        *word_writes(work.tenant_id, old, head),
    ]
    return WritePlan(writes, head.write_result(changes=details.get("changes")))


def _searchable(head: DocumentHead) -> tuple[Any, ...]:
    """Return the searchable attributes of a document other than its text."""
    metadata = json.loads(head.metadata)
    return head.mime_type, metadata.get("title"), metadata.get("tags")
