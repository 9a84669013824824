"""How a document changes: each write is one transaction over the document, its audit entry and its request's answer."""

from __future__ import annotations

import random
import time
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from shared.documents import errors, keys, timestamps
from shared.documents.idempotency import IdempotencyStore, WriteRequest
from shared.documents.models import WriteResult
from shared.documents.tree import ALIVE, Tree, TreePosition
from shared.dynamodb import ConditionFailed, Write
from shared.rpc.errors import KhoError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from shared.documents.models import MimeType
    from shared.dynamodb import Item, Table

_ATTEMPTS: Final = 12
_RETRYING_SECONDS: Final = 6.0
"""Who has lost for so long is told so, while there is time left to answer."""


@dataclass(frozen=True, slots=True)
class DocumentHead:
    """A document as it is now, without its body."""

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
    searchable_since: int | None = None
    """The revision that made what is searched of it: its text, title and tags; None where `content_revision` did."""

    @classmethod
    def from_item(cls, item: Item) -> DocumentHead:
        """The head that an item holds."""
        return cls(
            document_id=item["document_id"],
            parent_id=item["parent_id"],
            revision=int(item["revision"]),
            content_revision=int(item["content_revision"]),
            mime_type=item["mime_type"],
            metadata=item["metadata"],
            is_human_readable=item["is_human_readable"],
            created_at=int(item["created_at"]),
            updated_at=int(item["updated_at"]),
            delete_at=int(item["delete_at"]) if "delete_at" in item else None,
            searchable_since=int(item["searchable_since"]) if "searchable_since" in item else None,
        )

    @property
    def searchable_revision(self) -> int:
        """The revision since which the same is searched of it."""
        return self.content_revision if self.searchable_since is None else self.searchable_since

    def as_item(self) -> Item:
        """The head as an item holds it."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def deleted(self, now: int) -> bool:
        """Whether it is deleted at that moment."""
        return self.delete_at is not None and self.delete_at <= now

    def write_result(self, *, deleted: bool | None = None) -> WriteResult:
        """What a write that made this answers."""
        return WriteResult(
            document_id=self.document_id,
            revision=self.revision,
            updated_at=timestamps.to_iso(self.updated_at),
            parent_id=self.parent_id,
            deleted=deleted,
            delete_at=None if self.delete_at is None else timestamps.to_iso(self.delete_at),
        )


@dataclass(frozen=True, slots=True)
class DocumentNode:
    """A document, and where it stands."""

    head: DocumentHead
    position: TreePosition


@dataclass(frozen=True, slots=True)
class WritePlan:
    """The writes of one change, and what it answers when they are done."""

    writes: list[Write]
    answer: WriteResult


@dataclass(slots=True)
class UnitOfWork:
    """What changes the documents of one tenant."""

    table: Table
    tenant_id: str
    tree: Tree = field(init=False)
    requests: IdempotencyStore = field(init=False)
    written: list[str] = field(default_factory=list)
    """The documents that were written so far."""

    def __post_init__(self) -> None:
        self.tree = Tree(self.table, self.tenant_id)
        self.requests = IdempotencyStore(self.table, self.tenant_id)

    def execute(self, request: WriteRequest, document_id: str, prepare: Callable[[int], WritePlan]) -> WriteResult:
        """Plan a change on what there is now and write it; where that has changed meanwhile, plan it again."""
        return self._write_plan(request, document_id, prepare, self.requests.completion_write)

    def execute_in_steps(
        self, request: WriteRequest, document_id: str, prepare: Callable[[int], WritePlan], follow: Callable[[], None]
    ) -> WriteResult:
        """Carry out a change of which one transaction is only the beginning, and `follow` all that comes after."""
        answer = self._write_plan(request, document_id, prepare, lambda request, _: self.requests.claim_write(request))
        if answer.replayed:
            return answer
        try:
            follow()
        except KhoError:
            self.requests.release(request)
            raise
        self.requests.finish(request, answer)
        return answer

    def _write_plan(
        self,
        request: WriteRequest,
        document_id: str,
        prepare: Callable[[int], WritePlan],
        recorded: Callable[[WriteRequest, WriteResult], list[Write]],
    ) -> WriteResult:
        started = time.monotonic()
        for attempt in range(_ATTEMPTS):
            if time.monotonic() - started > _RETRYING_SECONDS:
                break
            earlier = self.requests.stored_answer(request)
            if earlier:
                return earlier
            try:
                plan = prepare(timestamps.now())
                answer = replace(plan.answer, request_id=request.request_id)
                self.write(*plan.writes, *recorded(request, answer))
            except ConditionFailed:
                backoff(attempt)
            except KhoError:
                # What refuses this one may be what the first of the same id has done.
                earlier = self.requests.stored_answer(request)
                if earlier:
                    return earlier
                raise
            else:
                return answer
        raise errors.too_busy(document_id)

    def write(self, *writes: Write) -> None:
        """Carry out all writes or none, if there are any."""
        if not writes:
            return
        self.table.transact(*writes)
        partitions = [write.target["pk"] for write in writes if write.target["sk"] == keys.DOCUMENT]
        self.written += [keys.document_of(pk)[1] for pk in partitions]

    def nodes(self, document_ids: Iterable[str]) -> dict[str, DocumentNode]:
        """Documents and their positions, deleted or not."""
        partitions = [keys.document(self.tenant_id, each) for each in document_ids]
        items = self.table.get_all((pk, sk) for pk in partitions for sk in (keys.DOCUMENT, keys.POSITION))
        found: dict[str, dict[str, Item]] = {}
        for item in items:
            found.setdefault(item["document_id"], {})[item["sk"]] = item
        return {
            document_id: DocumentNode(
                DocumentHead.from_item(parts[keys.DOCUMENT]), TreePosition.from_item(parts[keys.POSITION])
            )
            for document_id, parts in found.items()
        }

    def find(self, document_id: str) -> DocumentNode:
        """A document and its position, deleted or not."""
        found = self.nodes([document_id]).get(document_id)
        if found is None:
            raise errors.no_document(document_id)
        return found

    def find_active(self, document_id: str, now: int) -> DocumentNode:
        """A document that is not deleted, and its position."""
        found = self.find(document_id)
        if found.head.deleted(now) or found.position.deleted(now):
            raise errors.no_document(document_id)
        return found

    def key(self, document_id: str) -> Item:
        """The key of a document."""
        return {"pk": keys.document(self.tenant_id, document_id), "sk": keys.DOCUMENT}

    def head_update(self, old: DocumentHead, new: DocumentHead, now: int, condition: str = ALIVE) -> Write:
        """What makes `new` of `old`, unless somebody else has written since."""
        values: dict[str, Any] = {":revision": old.revision}
        before, after = old.as_item(), new.as_item()
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
            condition=" AND ".join(each for each in ("revision = :revision", condition) if each),
            values=values,
        )

    def audit_entry(self, request: WriteRequest, head: DocumentHead, now: int, **details: Any) -> Write:
        """The entry in the audit log of the change that made `head`."""
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


def backoff(attempt: int) -> None:
    """Wait a little, each time longer, so that those who met do not meet again."""
    time.sleep(random.uniform(0, 0.005 * 2 ** min(attempt, 6)))  # noqa: S311 - spreads retries, no secret
