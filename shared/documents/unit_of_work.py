"""The unit of work: each change is one transaction over the document, its audit entry and its idempotency record."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from shared.aws.dynamodb import Write, from_item, optimistic_retry, to_item
from shared.documents import errors, keys
from shared.documents.idempotency import IdempotencyStore, WriteRequest
from shared.documents.models import WriteResult
from shared.documents.tree import ALIVE, Tree, TreePosition
from shared.platform.telemetry import seconds_left
from shared.rpc import timestamps
from shared.rpc.errors import KhoError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from shared.aws.dynamodb import Item, Table
    from shared.documents.models import MimeType

ATTEMPTS: Final = 12
_RETRY_SECONDS: Final = 6.0
_ANSWER_SECONDS: Final = 4.0
"""A caller gets a conflict while there is time left to answer."""


@dataclass(frozen=True, slots=True)
class Patience:
    """The attempts of a write while other writers are faster, and the seconds in which they begin."""

    attempts: int = ATTEMPTS
    seconds: float = _RETRY_SECONDS


@dataclass(frozen=True, slots=True)
class DocumentHead:
    """The current state of a document, without its body."""

    document_id: str
    parent_id: str
    revision: int
    content_revision: int
    mime_type: MimeType
    metadata: str
    is_human_readable: bool
    created_at: int
    updated_at: int
    delete_at: int | None = None
    gone: bool | None = None
    """True if the deletion had taken effect when it was written: no clock brings the document back."""
    searchable_since: int | None = None
    """The revision that last changed its text, title or tags. None if that is `content_revision`."""

    @property
    def searchable_revision(self) -> int:
        """The revision since which its searchable text has not changed."""
        return self.content_revision if self.searchable_since is None else self.searchable_since

    def deleted(self, now: int) -> bool:
        """Return True if the document is deleted at `now`."""
        return bool(self.gone) or (self.delete_at is not None and self.delete_at <= now)

    def revised(self, now: int, **changes: Any) -> DocumentHead:
        """Return the next revision, written at `now`."""
        return replace(self, revision=self.revision + 1, updated_at=now, **changes)

    def write_result(self, *, deleted: bool | None = None, changes: str | None = None) -> WriteResult:
        """Return the result of the write that led to this state."""
        return WriteResult(
            document_id=self.document_id,
            revision=self.revision,
            updated_at=timestamps.to_iso(self.updated_at),
            parent_id=self.parent_id,
            deleted=deleted,
            delete_at=timestamps.optional_iso(self.delete_at),
            changes=changes,
        )


@dataclass(frozen=True, slots=True)
class DocumentNode:
    """A document and its position in the tree."""

    head: DocumentHead
    position: TreePosition


@dataclass(frozen=True, slots=True)
class WritePlan:
    """The writes of one change, and its result once they are committed."""

    writes: list[Write]
    result: WriteResult


@dataclass(slots=True)
class UnitOfWork:
    """Transactional changes to the documents of one tenant."""

    table: Table
    tenant_id: str
    tree: Tree = field(init=False)
    idempotency: IdempotencyStore = field(init=False)
    written: list[str] = field(default_factory=list)
    """The ids of the documents written so far."""

    def __post_init__(self) -> None:
        self.tree = Tree(self.table, self.tenant_id)
        self.idempotency = IdempotencyStore(self.table, self.tenant_id)

    def execute(
        self,
        request: WriteRequest,
        document_id: str,
        prepare: Callable[[int], WritePlan],
        follow_up: Callable[[], None] | None = None,
        *,
        patience: Patience = Patience(),
    ) -> WriteResult:
        """Commit the writes that `prepare` returns and the request's result in one transaction.

        `prepare` gets the current time, reads the current state and returns conditional writes. It may first write what
        holds without them: shorter order keys of siblings, or a measured height. If a condition fails because another
        writer was faster, `prepare` runs again. With a `follow_up`, which has transactions of its own, the
        first transaction claims the request, and the result is stored after the last.
        """

        def attempt() -> WriteResult:
            stored = self.idempotency.stored_result(request)
            if stored:
                return stored
            try:
                plan = prepare(timestamps.now())
                result = replace(plan.result, request_id=request.request_id)
                self.commit(*plan.writes, *self.idempotency.record(request, None if follow_up else result))
            except KhoError:
                # An earlier request with this id may have succeeded, and so caused this error.
                stored = self.idempotency.stored_result(request)
                if stored:
                    return stored
                raise
            return result

        exhausted = errors.too_busy(document_id)
        seconds = min(patience.seconds, max(_RETRY_SECONDS, seconds_left() - _ANSWER_SECONDS))
        result = optimistic_retry(attempt, attempts=patience.attempts, seconds=seconds, exhausted=exhausted)
        if result.replayed or follow_up is None:
            return result
        try:
            follow_up()
        except KhoError:
            self.idempotency.release(request)
            raise
        self.idempotency.finish(request, result)
        return result

    def commit(self, *writes: Write) -> None:
        """Carry out all writes or none in one transaction. Do nothing without writes."""
        if not writes:
            return
        self.table.transact(*writes)
        partitions = [write.target["pk"] for write in writes if write.target["sk"] == keys.DOCUMENT]
        self.written += [keys.document_of(pk)[1] for pk in partitions]

    def nodes(self, document_ids: Iterable[str]) -> dict[str, DocumentNode]:
        """Return the existing documents among `document_ids` with their positions, deleted ones included."""
        partitions = [keys.document(self.tenant_id, document_id) for document_id in document_ids]
        items = self.table.get_all((pk, sk) for pk in partitions for sk in (keys.DOCUMENT, keys.POSITION))
        items_by_id: dict[str, dict[str, Item]] = {}
        for item in items:
            items_by_id.setdefault(item["document_id"], {})[item["sk"]] = item
        return {
            document_id: DocumentNode(
                from_item(DocumentHead, parts[keys.DOCUMENT]), from_item(TreePosition, parts[keys.POSITION])
            )
            for document_id, parts in items_by_id.items()
        }

    def require(self, document_id: str) -> DocumentNode:
        """Return a document, deleted or not, with its position. Raise NotFound if it does not exist."""
        node = self.nodes([document_id]).get(document_id)
        if node is None:
            raise errors.no_document(document_id)
        return node

    def key(self, document_id: str) -> Item:
        """Return the key of a document's head."""
        return {"pk": keys.document(self.tenant_id, document_id), "sk": keys.DOCUMENT}

    def head_update(self, old: DocumentHead, new: DocumentHead, now: int, condition: str = ALIVE) -> Write:
        """Build the update from `old` to `new`, on condition that the revision is still that of `old`."""
        values: dict[str, Any] = {":revision": old.revision}
        before, after = to_item(old), to_item(new)
        changed = [name for name, value in after.items() if value != before.get(name)]
        removed = [name for name in before if name not in after]
        values |= {f":new_{name}": after[name] for name in changed}
        if condition == ALIVE:
            values[":now"] = now
        return Write(
            "Update",
            self.key(old.document_id),
            expression=f"SET {', '.join(f'{name} = :new_{name}' for name in changed)}"
            + (f" REMOVE {', '.join(removed)}" if removed else ""),
            condition=" AND ".join(part for part in ("revision = :revision", condition) if part),
            values=values,
        )

    def audit_entry(self, request: WriteRequest, head: DocumentHead, now: int, **details: Any) -> Write:
        """Build the audit log entry of the change that led to `head`."""
        entry = {
            "pk": keys.document(self.tenant_id, head.document_id),
            "sk": keys.history(head.revision),
            "revision": head.revision,
            "content_revision": head.content_revision,
            "parent_id": head.parent_id,
            "action": request.action,
            "at": now,
            "sub": request.caller.sub,
            "labels": list(request.caller.labels),
            "correlation_id": request.correlation_id,
            "request_id": request.request_id,
            "delete_at": head.delete_at,
            **details,
        }
        item = {name: value for name, value in entry.items() if value is not None}
        return Write("Put", item, condition="attribute_not_exists(pk)")
