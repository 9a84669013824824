"""Moving documents in the tree."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shared.documents import errors
from shared.documents.sibling_order import SiblingOrder, relocation_writes
from shared.documents.tree import ALIVE, MAX_DEPTH
from shared.documents.unit_of_work import WritePlan
from shared.dynamodb import Write

if TYPE_CHECKING:
    from shared.documents.idempotency import WriteRequest
    from shared.documents.models import WriteResult
    from shared.documents.sibling_order import SiblingPosition
    from shared.documents.tree import TreePosition
    from shared.documents.unit_of_work import UnitOfWork


@dataclass(frozen=True, slots=True)
class Move:
    """A move of a document, with everything below it, to a position among the children of a parent."""

    document_id: str
    parent_id: str
    target: SiblingPosition


def move(work: UnitOfWork, request: WriteRequest, command: Move) -> WriteResult:
    """Move a document. Concurrent moves cannot form a cycle."""
    return work.execute(request, command.document_id, lambda now: _plan_move(work, request, command, now))


def _plan_move(work: UnitOfWork, request: WriteRequest, command: Move, now: int) -> WritePlan:
    """Read the document and its new ancestors, check the move, and build its writes."""
    node = work.require_active(command.document_id, now)
    ancestors = work.tree.ancestors(command.parent_id, now)
    if any(ancestor.document_id == command.document_id for ancestor in ancestors):
        raise errors.cycle(command.document_id, command.parent_id)
    old = _with_reliable_height(work, node.position, command.parent_id, MAX_DEPTH - len(ancestors) - 1)
    order_key = SiblingOrder(work.tree, command.parent_id, command.document_id).key(command.target, now)
    new = replace(old, parent_id=command.parent_id, order_key=order_key)
    parent = ancestors[0] if ancestors else None
    if parent is not None and parent.delete_at is not None and old.outlives(parent.delete_at):
        if not old.childless:
            raise errors.deleted_parent(command.parent_id)
        new = replace(new, delete_at=parent.delete_at, deletion=parent.deletion)
    head = replace(
        node.head, revision=node.head.revision + 1, parent_id=command.parent_id, updated_at=now, delete_at=new.delete_at
    )
    writes = [
        work.head_update(node.head, head, now),
        _position_update(work, old, new, now),
        *relocation_writes(work.tree, old, new),
        work.audit_entry(request, head, now, from_revision=node.head.revision),
        *work.tree.attachment_writes(ancestors, old.height),
    ]
    return WritePlan(writes, head.write_result())


def _with_reliable_height(work: UnitOfWork, position: TreePosition, parent_id: str, max_height: int) -> TreePosition:
    """Return the position. Measure its height if it is too high or unfinished. Raise TOO_DEEP if it stays too high."""
    if position.height > max_height or position.measuring:
        position = work.tree.measure_height(position, max_height)
        if position.height > max_height:
            work.table.write(work.tree.height_write(position))
            raise errors.too_deep(parent_id, MAX_DEPTH)
    return position


def _position_update(work: UnitOfWork, old: TreePosition, new: TreePosition, now: int) -> Write:
    """Build the update from `old` to `new`, on condition that nothing moved it, deleted it or raised its height."""
    expression = "SET parent_id = :parent, order_key = :key, height = :height, version = version + :one"
    conditions = ["version = :version", "height <= :height", ALIVE]
    values: dict[str, Any] = {
        ":parent": new.parent_id,
        ":key": new.order_key,
        ":height": old.height,
        ":version": old.version,
        ":one": 1,
        ":now": now,
    }
    if new.delete_at is not None and new.delete_at != old.delete_at:
        expression += ", delete_at = :delete_at, deletion = :deletion"
        values |= {":delete_at": new.delete_at, ":deletion": new.deletion, ":arrivals": old.arrivals}
        conditions.append("arrivals = :arrivals")
    return Write(
        "Update",
        work.tree.key(old.document_id),
        expression=f"{expression} REMOVE measuring",
        condition=" AND ".join(conditions),
        values=values,
    )
