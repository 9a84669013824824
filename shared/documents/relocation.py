"""Moving documents in the tree."""

from __future__ import annotations

from dataclasses import replace
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


def move(
    changes: UnitOfWork, request: WriteRequest, document_id: str, parent_id: str, place: SiblingPosition
) -> WriteResult:
    """Bring a document, with all that is below it, to a place under a parent."""

    def prepare(now: int) -> WritePlan:
        node = changes.find_active(document_id, now)
        chain = changes.tree.chain(parent_id, now)
        if any(above.document_id == document_id for above in chain):
            raise errors.cycle(document_id, parent_id)
        old = _fitting(changes, node.position, parent_id, len(chain))
        new = replace(
            old, parent_id=parent_id, order_key=SiblingOrder(changes.tree, parent_id, document_id).key(place, now)
        )
        if chain and chain[0].delete_at is not None and old.outlives(chain[0].delete_at):
            if not old.childless:
                raise errors.deleted_parent(parent_id)
            new = replace(new, delete_at=chain[0].delete_at, deletion=chain[0].deletion)
        head = replace(
            node.head, revision=node.head.revision + 1, parent_id=parent_id, updated_at=now, delete_at=new.delete_at
        )
        writes = [
            changes.head_update(node.head, head, now),
            _repositioned(changes, old, new, now),
            *relocation_writes(changes.tree, old, new),
            changes.audit_entry(request, head, now, from_revision=node.head.revision),
            *changes.tree.attachment(chain, old.height),
        ]
        return WritePlan(writes, head.write_result())

    return changes.execute(request, document_id, prepare)


def _fitting(changes: UnitOfWork, position: TreePosition, parent_id: str, depth: int) -> TreePosition:
    """The position of a document that fits under a parent at `depth`, with a height that can be relied on."""
    room = MAX_DEPTH - depth - 1
    if position.height > room or position.measuring:
        position = changes.tree.measure(position, room)
        if position.height > room:
            changes.table.write(changes.tree.measured(position))
            raise errors.too_deep(parent_id, MAX_DEPTH)
    return position


def _repositioned(changes: UnitOfWork, old: TreePosition, new: TreePosition, now: int) -> Write:
    """What changes a position, unless it is another by now, or higher than was reckoned with."""
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
        changes.tree.key(old.document_id),
        expression=f"{expression} REMOVE measuring",
        condition=" AND ".join(conditions),
        values=values,
    )
