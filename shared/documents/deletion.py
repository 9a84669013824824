"""Soft deletion and restoration of documents: immediate or scheduled, of one document or a subtree.

No child outlives its parent. A recursive deletion marks documents from the top down. Nothing can come below a marked
document, so the walk, which lists the children of each document after marking it, meets all descendants. Each keeps
the id of its deletion, so that a restoration brings back exactly what that deletion took. A repeated call finishes an
interrupted walk.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from shared.aws.dynamodb import Table, Write, optimistic_retry
from shared.documents import errors, keys
from shared.documents.idempotency import WriteRequest
from shared.documents.models import WriteResult
from shared.documents.sibling_order import listing_write
from shared.documents.unit_of_work import ATTEMPTS, DocumentNode, UnitOfWork, WritePlan
from shared.rpc import timestamps

_BATCH: Final = 14
"""Each document takes up to six of the 100 writes of a transaction, and its parent may take one."""
_CONCURRENT_QUERIES: Final = 16
_SECOND: Final = 1_000_000
PURGE_DELAY_SECONDS: Final = 7 * 86_400
"""From a scheduled deletion until the index forgets the document, so that a clock that is ahead destroys nothing."""
_EXPIRY_DELAY_SECONDS: Final = PURGE_DELAY_SECONDS + 60
"""Clocks differ: without the minute, the record could expire before the purge is due."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """A deletion request: when, why, by whom, and with descendants or not."""

    delete_at: int | None = None
    reason: str | None = None
    deleted_by: str | None = None
    recursive: bool = False


def delete(work: UnitOfWork, request: WriteRequest, document_id: str, deletion: Deletion) -> WriteResult:
    """Delete a document now or at a given time. Change nothing if it is already deleted."""
    details = {"reason": deletion.reason, "deleted_by": deletion.deleted_by}

    def prepare(now: int) -> WritePlan:
        node = work.require(document_id)
        if node.head.deleted(now):
            return WritePlan([], node.head.write_result(deleted=True))
        requested = now if deletion.delete_at is None else deletion.delete_at
        delete_at, parent_writes = _latest_with_parent(work, node, requested, now)
        if not deletion.recursive and work.tree.has_children_after(document_id, delete_at):
            raise errors.has_children(document_id)
        if node.head.delete_at == delete_at:
            return WritePlan([], node.head.write_result(deleted=False))
        # A rescheduled deletion keeps its id, which the descendants that it has marked carry too.
        deletion_id = secrets.token_hex(8) if node.head.delete_at is None else node.position.deletion
        marked = _mark(node, delete_at, deletion_id, now, gone=delete_at <= now)
        writes = [*_mark_writes(work, request, node, marked, now, **details), *parent_writes]
        return WritePlan(writes, marked.head.write_result(deleted=delete_at <= now))

    follow_up = partial(_delete_descendants, work, request, document_id, details) if deletion.recursive else None
    return work.execute(request, document_id, prepare, follow_up)


def restore(work: UnitOfWork, request: WriteRequest, document_id: str, *, recursive: bool = False) -> WriteResult:
    """Restore a deleted document to its position, or cancel its scheduled deletion with everything it would take."""
    # A deletion that has taken effect is restored below the document only if that is requested.
    pending_at = None if recursive else timestamps.now()

    def prepare(now: int) -> WritePlan:
        node = work.require(document_id)
        if node.head.delete_at is None:
            return WritePlan([], node.head.write_result(deleted=False))
        ancestors = work.tree.ancestors(node.position.parent_id, now)
        delete_at = ancestors[0].delete_at if ancestors else None
        if node.head.delete_at == delete_at:
            return WritePlan([], node.head.write_result(deleted=False))
        marked = _mark(node, delete_at, node.position.deletion, now)
        writes = _mark_writes(work, request, node, marked, now)
        writes += work.tree.attachment_writes(ancestors, node.position.height)
        return WritePlan(writes, marked.head.write_result(deleted=False))

    return work.execute(
        request, document_id, prepare, partial(_restore_descendants, work, request, document_id, pending_at)
    )


def schedule_deletion_event(table: Table, tenant_id: str, document_id: str) -> None:
    """Make the table's stream deliver a record when the index may forget a document, if its deletion is scheduled."""
    item = table.get(keys.document(tenant_id, document_id), keys.DOCUMENT)
    delete_at = item.get("delete_at") if item else None
    if delete_at is not None and delete_at > timestamps.now():
        key = {"pk": keys.document(tenant_id, document_id), "sk": keys.DELETION}
        table.write(Write("Put", key | {"expires_at": delete_at // _SECOND + _EXPIRY_DELAY_SECONDS}))


def _latest_with_parent(work: UnitOfWork, node: DocumentNode, delete_at: int, now: int) -> tuple[int, list[Write]]:
    """Cap a deletion time at the parent's. If it is still to come, build the check that the parent keeps its own.

    The check also records that a child still exists.
    """
    parent_id = node.position.parent_id
    if delete_at <= now or parent_id == keys.ROOT:
        return delete_at, []
    parent = work.tree.find(parent_id)
    assert parent is not None
    if parent.delete_at is not None:
        delete_at = min(delete_at, parent.delete_at)
    return delete_at, work.tree.attachment_writes([parent], node.position.height)


def _mark(
    node: DocumentNode, delete_at: int | None, deletion_id: str | None, now: int, *, gone: bool | None = False
) -> DocumentNode:
    position = replace(node.position, delete_at=delete_at, deletion=deletion_id, gone=gone or None)
    return DocumentNode(node.head.revised(now, delete_at=delete_at, gone=gone or None), position)


def _mark_writes(
    work: UnitOfWork, request: WriteRequest, old: DocumentNode, new: DocumentNode, now: int, **details: Any
) -> list[Write]:
    """Build the writes that set or remove a deletion time, unless the document or its children have changed."""
    values: dict[str, Any] = {
        ":version": old.position.version,
        ":arrivals": old.position.arrivals,
        ":one": 1,
        ":deletion": new.position.deletion,
    }
    expression = "SET version = version + :one, deletion = :deletion"
    if new.position.delete_at is not None:
        expression += ", delete_at = :delete_at"
        values[":delete_at"] = new.position.delete_at
    if new.position.gone:
        expression += ", gone = :gone"
        values[":gone"] = True
    removed = [name for name in ("delete_at", "gone") if getattr(new.position, name) is None]
    if removed:
        expression += f" REMOVE {', '.join(removed)}"
    position = Write(
        "Update",
        work.tree.key(old.position.document_id),
        expression=expression,
        condition="version = :version AND arrivals = :arrivals",
        values=values,
    )
    return [
        work.head_update(old.head, new.head, now, condition=""),
        position,
        listing_write(work.tree, new.position),
        *work.tree.bin_writes(old.position, new.position),
        work.audit_entry(request, new.head, now, from_revision=old.head.revision, **details),
    ]


def _delete_descendants(work: UnitOfWork, request: WriteRequest, document_id: str, details: dict[str, Any]) -> None:
    """Give all descendants the deletion time of a document, except those that are deleted earlier."""
    top = work.require(document_id).position
    delete_at = top.delete_at

    def plan(nodes: list[DocumentNode], now: int) -> list[Write]:
        if delete_at is None:
            return []
        writes = []
        for node in nodes:
            if node.position.outlives(delete_at):
                marked = _mark(node, delete_at, top.deletion, now, gone=top.gone or delete_at <= now)
                writes += _mark_writes(work, request, node, marked, now, **details, together_with=document_id)
        return writes

    _update_descendants(work, document_id, plan, lambda _: True)


def _restore_descendants(work: UnitOfWork, request: WriteRequest, document_id: str, pending_at: int | None) -> None:
    """Restore the descendants that a document's deletion took, or only those that it had still to take at a time."""
    deletion_id = work.require(document_id).position.deletion
    if deletion_id is None:
        return

    def returns(node: DocumentNode) -> bool:
        position = node.position
        if position.delete_at is None:
            return True
        return position.deletion == deletion_id and (pending_at is None or not position.deleted(pending_at))

    def plan(nodes: list[DocumentNode], now: int) -> list[Write]:
        deleted = [node for node in nodes if node.position.delete_at is not None and returns(node)]
        writes = []
        parents = work.tree.positions({node.position.parent_id for node in deleted})
        for parent_id, parent in parents.items():
            if parent.deleted(now):
                raise errors.deleted_parent(parent_id)
            children = [node for node in deleted if node.position.parent_id == parent_id]
            children = [node for node in children if node.position.delete_at != parent.delete_at]
            if children:
                writes += work.tree.attachment_writes([parent], max(node.position.height for node in children))
            for node in children:
                marked = _mark(node, parent.delete_at, deletion_id, now)
                writes += _mark_writes(work, request, node, marked, now, together_with=document_id)
        return writes

    _update_descendants(work, document_id, plan, returns)


def _update_descendants(
    work: UnitOfWork,
    document_id: str,
    plan: Callable[[list[DocumentNode], int], list[Write]],
    descends_below: Callable[[DocumentNode], bool],
) -> None:
    """Commit what is planned for the descendants of a document, level by level, in transactions of a batch each."""
    from concurrent.futures import ThreadPoolExecutor

    def update_batch(parents: dict[str, str]) -> list[str]:
        """Update the children that still have the parent they were listed under. Return the ids to descend below."""
        nodes = [node for child_id, node in work.nodes(parents).items() if node.position.parent_id == parents[child_id]]
        work.commit(*plan(nodes, timestamps.now()))
        return [node.head.document_id for node in nodes if not node.position.childless and descends_below(node)]

    def list_children(parent_id: str) -> list[tuple[str, str]]:
        return [(child["document_id"], parent_id) for child in work.tree.children(parent_id)]

    level = [document_id]
    with ThreadPoolExecutor(_CONCURRENT_QUERIES) as pool:
        while level:
            children = [pair for pairs in pool.map(list_children, level) for pair in pairs]
            level = []
            for start in range(0, len(children), _BATCH):
                level += optimistic_retry(
                    partial(update_batch, dict(children[start : start + _BATCH])),
                    attempts=ATTEMPTS,
                    exhausted=errors.too_busy(document_id),
                )
