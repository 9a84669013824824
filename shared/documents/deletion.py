"""Deleting and restoring documents: softly, at a moment, alone or with all that is below.

No child outlives its parent. What is deleted with its descendants is marked from the top down: from the first mark
on nothing can come below it, so that the walk, which lists the children of each after marking it, meets them all.
They bear the name of their deletion, so that restoring brings back what it took and nothing else. Either walk that
breaks off is finished by asking again.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from shared.documents import errors, keys, timestamps
from shared.documents.sibling_order import listing_writes
from shared.documents.unit_of_work import DocumentHead, DocumentNode, WritePlan, backoff
from shared.dynamodb import ConditionFailed, Write

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.documents.idempotency import WriteRequest
    from shared.documents.models import WriteResult
    from shared.documents.tree import TreePosition
    from shared.documents.unit_of_work import UnitOfWork
    from shared.dynamodb import Table

_BATCH: Final = 19
"""Each document takes four writes of a transaction's hundred, and its parent may take one."""
_ATTEMPTS: Final = 12
_QUERIES: Final = 16
_SECOND: Final = 1_000_000
_AFTER_SECONDS: Final = 60
"""Clocks differ: what goes too early would tell of a deletion that has not come yet."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """When a document is to be deleted, why, and on whose word."""

    delete_at: int | None = None
    reason: str | None = None
    deleted_by: str | None = None
    recursive: bool = False


def delete(changes: UnitOfWork, request: WriteRequest, document_id: str, deletion: Deletion) -> WriteResult:
    """Delete a document at a moment; one that is deleted already stays as it is."""
    said = {"reason": deletion.reason, "deleted_by": deletion.deleted_by}

    def prepare(now: int) -> WritePlan:
        node = changes.find(document_id)
        if node.head.deleted(now):
            return WritePlan([], node.head.write_result(deleted=True))
        moment, checks = _moment(changes, node, now if deletion.delete_at is None else deletion.delete_at, now)
        if not deletion.recursive and changes.tree.has_children_beyond(document_id, moment):
            raise errors.has_children(document_id)
        if node.head.delete_at == moment:
            return WritePlan([], node.head.write_result(deleted=False))
        # A deletion that is put off or brought forward is the same one to what it has marked below.
        name = secrets.token_hex(8) if node.head.delete_at is None else node.position.deletion
        marked = _marked(node, moment, name, now)
        writes = [*_remarked(changes, request, node, marked, now, **said), *checks]
        return WritePlan(writes, marked.head.write_result(deleted=moment <= now))

    if not deletion.recursive:
        return changes.execute(request, document_id, prepare)
    return changes.execute_in_steps(
        request, document_id, prepare, lambda: _delete_below(changes, request, document_id, said)
    )


def restore(changes: UnitOfWork, request: WriteRequest, document_id: str, *, recursive: bool = False) -> WriteResult:
    """Bring a deleted document back to its place, or call off a deletion to come."""

    def prepare(now: int) -> WritePlan:
        node = changes.find(document_id)
        if node.head.delete_at is None:
            return WritePlan([], node.head.write_result(deleted=False))
        chain = changes.tree.chain(node.position.parent_id, now)
        moment = chain[0].delete_at if chain else None
        if node.head.delete_at == moment:
            return WritePlan([], node.head.write_result(deleted=False))
        marked = _marked(node, moment, node.position.deletion, now)
        checks = changes.tree.attachment(chain, node.position.height)
        return WritePlan(
            [*_remarked(changes, request, node, marked, now), *checks], marked.head.write_result(deleted=False)
        )

    if not recursive:
        return changes.execute(request, document_id, prepare)
    return changes.execute_in_steps(
        request, document_id, prepare, lambda: _restore_below(changes, request, document_id)
    )


def remind(table: Table, tenant_id: str, document_id: str) -> None:
    """Have the table's stream tell of a deletion to come when its moment has come, if there is one."""
    item = table.get(keys.document(tenant_id, document_id), keys.DOCUMENT)
    delete_at = DocumentHead.from_item(item).delete_at if item else None
    if delete_at is not None and delete_at > timestamps.now():
        going = delete_at // _SECOND + _AFTER_SECONDS
        key = {"pk": keys.document(tenant_id, document_id), "sk": keys.DELETION}
        table.write(Write("Put", key | {"expires_at": going}))


def _moment(changes: UnitOfWork, node: DocumentNode, wished: int, now: int) -> tuple[int, list[Write]]:
    """When a document is to be deleted, at the latest with its parent; and what checks that where it is to come."""
    parent_id = node.position.parent_id
    if wished <= now or parent_id == keys.ROOT:
        return wished, []
    parent = changes.tree.find(parent_id)
    assert parent is not None
    if parent.delete_at is None:
        return wished, [_checked(changes, parent, "attribute_not_exists(delete_at)", {})]
    check = _checked(changes, parent, "delete_at = :delete_at", {":delete_at": parent.delete_at})
    return min(wished, parent.delete_at), [check]


def _checked(changes: UnitOfWork, parent: TreePosition, condition: str, values: dict[str, Any]) -> Write:
    """What lets a child's deletion be put off: its parent ends when it was read to, and knows that the child stays."""
    return Write(
        "Update",
        changes.tree.key(parent.document_id),
        expression="ADD arrivals :one",
        condition=condition,
        values={":one": 1, **values},
    )


def _marked(node: DocumentNode, moment: int | None, deletion: str | None, now: int) -> DocumentNode:
    head = replace(node.head, revision=node.head.revision + 1, updated_at=now, delete_at=moment)
    return DocumentNode(head, replace(node.position, delete_at=moment, deletion=deletion))


def _remarked(
    changes: UnitOfWork, request: WriteRequest, old: DocumentNode, new: DocumentNode, now: int, **details: Any
) -> list[Write]:
    """What marks a document as deleted at a moment, or as not deleted, unless it or what is below it has changed."""
    values: dict[str, Any] = {
        ":version": old.position.version,
        ":arrivals": old.position.arrivals,
        ":one": 1,
        ":deletion": new.position.deletion,
    }
    expression = "SET version = version + :one, deletion = :deletion"
    if new.position.delete_at is None:
        expression += " REMOVE delete_at"
    else:
        expression += ", delete_at = :delete_at"
        values[":delete_at"] = new.position.delete_at
    position = Write(
        "Update",
        changes.tree.key(old.position.document_id),
        expression=expression,
        condition="version = :version AND arrivals = :arrivals",
        values=values,
    )
    return [
        changes.head_update(old.head, new.head, now, condition=""),
        position,
        listing_writes(changes.tree, new.position),
        changes.audit_entry(request, new.head, now, from_revision=old.head.revision, **details),
    ]


def _delete_below(changes: UnitOfWork, request: WriteRequest, document_id: str, said: dict[str, Any]) -> None:
    """Mark everything below a document as it is marked itself, but for what ends before it."""
    top = changes.find(document_id).position
    moment = top.delete_at

    def plan(nodes: list[DocumentNode], now: int) -> list[Write]:
        if moment is None:
            return []
        marked = [(node, _marked(node, moment, top.deletion, now)) for node in nodes if node.position.outlives(moment)]
        details = {**said, "together_with": document_id}
        return [write for old, new in marked for write in _remarked(changes, request, old, new, now, **details)]

    _descend(changes, document_id, plan, lambda _: True)


def _restore_below(changes: UnitOfWork, request: WriteRequest, document_id: str) -> None:
    """Bring back what the last deletion of a document took with it."""
    deletion = changes.find(document_id).position.deletion

    def is_back(node: DocumentNode) -> bool:
        return node.position.deletion == deletion or node.position.delete_at is None

    def plan(nodes: list[DocumentNode], now: int) -> list[Write]:
        returning = [node for node in nodes if node.position.delete_at is not None and is_back(node)]
        writes = []
        parents = changes.tree.positions({node.position.parent_id for node in returning})
        for parent_id, parent in parents.items():
            if parent.deleted(now):
                raise errors.deleted_parent(parent_id)
            back = [node for node in returning if node.position.parent_id == parent_id]
            back = [node for node in back if node.position.delete_at != parent.delete_at]
            if back:
                writes += changes.tree.attachment([parent], max(node.position.height for node in back))
            for node in back:
                new = _marked(node, parent.delete_at, deletion, now)
                writes += _remarked(changes, request, node, new, now, together_with=document_id)
        return writes

    _descend(changes, document_id, plan, is_back)


def _descend(
    changes: UnitOfWork,
    document_id: str,
    plan: Callable[[list[DocumentNode], int], list[Write]],
    follows: Callable[[DocumentNode], bool],
) -> None:
    """Carry out what is planned for the documents below one, level by level, below those that `follows` says."""
    from concurrent.futures import ThreadPoolExecutor

    def settle(parents: dict[str, str]) -> list[str]:
        for attempt in range(_ATTEMPTS):
            found = changes.nodes(parents).items()
            nodes = [node for child, node in found if node.position.parent_id == parents[child]]
            try:
                changes.write(*plan(nodes, timestamps.now()))
            except ConditionFailed:
                backoff(attempt)
            else:
                return [node.head.document_id for node in nodes if not node.position.childless and follows(node)]
        raise errors.too_busy(document_id)

    def listed_below(parent_id: str) -> list[tuple[str, str]]:
        return [(child["document_id"], parent_id) for child in changes.tree.children(parent_id)]

    level = [document_id]
    with ThreadPoolExecutor(_QUERIES) as pool:
        while level:
            below = [pair for pairs in pool.map(listed_below, level) for pair in pairs]
            level = []
            for start in range(0, len(below), _BATCH):
                level += settle(dict(below[start : start + _BATCH]))
