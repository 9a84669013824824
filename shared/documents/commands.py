"""Commands that create and move documents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shared.aws.dynamodb import Write, to_item
from shared.documents import errors
from shared.documents.content_items import content_item, deferred_body
from shared.documents.names import word_writes
from shared.documents.sibling_order import SiblingOrder, SiblingPosition, listing_write, relocation_writes
from shared.documents.tree import ALIVE, MAX_DEPTH, TreePosition
from shared.documents.unit_of_work import DocumentHead, WritePlan
from shared.rpc.strict_json import compact

if TYPE_CHECKING:
    from shared.documents.idempotency import WriteRequest
    from shared.documents.models import MimeType, WriteResult
    from shared.documents.unit_of_work import UnitOfWork


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


def create(work: UnitOfWork, request: WriteRequest, new: NewDocument) -> WriteResult:
    """Create a document as the last child of its parent."""
    body = deferred_body(work, new.body)

    def prepare(now: int) -> WritePlan:
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
        order_key = SiblingOrder(work.tree, new.parent_id, new.document_id).make_room(SiblingPosition(), now)
        position = TreePosition(
            document_id=new.document_id,
            parent_id=new.parent_id,
            order_key=order_key,
            delete_at=head.delete_at,
            deletion=ancestors[0].deletion if head.delete_at is not None else None,
        )
        writes = [
            Write("Put", work.key(new.document_id) | to_item(head), condition="attribute_not_exists(pk)"),
            Write("Put", work.tree.key(new.document_id) | to_item(position)),
            listing_write(work.tree, position),
            *work.tree.bin_writes(None, position),
            Write("Put", content_item(work, head) | body()),
            work.audit_entry(request, head, now, from_revision=0),
            *word_writes(work.tenant_id, None, head),
            *work.tree.attachment_writes(ancestors, 0),
        ]
        return WritePlan(writes, head.write_result())

    return work.execute(request, new.document_id, prepare)


def move(
    work: UnitOfWork, request: WriteRequest, document_id: str, parent_id: str, target: SiblingPosition
) -> WriteResult:
    """Move a document, with everything below it, to a position among the children of a parent.

    Concurrent moves cannot form a cycle.
    """

    def prepare(now: int) -> WritePlan:
        node = work.require(document_id)
        if node.head.deleted(now) or node.position.deleted(now):
            raise errors.no_document(document_id)
        ancestors = work.tree.ancestors(parent_id, now)
        if any(ancestor.document_id == document_id for ancestor in ancestors):
            raise errors.cycle(document_id, parent_id)
        old = _settle_height(work, node.position, parent_id, MAX_DEPTH - len(ancestors) - 1)
        order_key = SiblingOrder(work.tree, parent_id, document_id).make_room(target, now)
        new = replace(old, parent_id=parent_id, order_key=order_key)
        parent = ancestors[0] if ancestors else None
        if parent is not None and parent.delete_at is not None and old.outlives(parent.delete_at):
            if not old.childless:
                raise errors.deleted_parent(parent_id)
            new = replace(new, delete_at=parent.delete_at, deletion=parent.deletion)
        head = node.head.revised(now, parent_id=parent_id, delete_at=new.delete_at)
        writes = [
            work.head_update(node.head, head, now),
            _position_update(work, old, new, now),
            *relocation_writes(work.tree, old, new),
            *work.tree.bin_writes(old, new),
            work.audit_entry(request, head, now, from_revision=node.head.revision),
            *work.tree.attachment_writes(ancestors, old.height),
        ]
        return WritePlan(writes, head.write_result())

    return work.execute(request, document_id, prepare)


def _settle_height(work: UnitOfWork, position: TreePosition, parent_id: str, max_height: int) -> TreePosition:
    """Measure the height of a position if it is too high or unfinished.

    Return the position, or store the height and raise TOO_DEEP if it stays too high.
    """
    if position.height > max_height or position.measuring:
        position = work.tree.measure_height(position, max_height)
        if position.height > max_height:
            measured = Write(
                "Update",
                work.tree.key(position.document_id),
                expression="SET height = :height REMOVE measuring",
                condition="height <= :height AND version = :version",  # unless a higher one was stored meanwhile
                values={":height": position.height, ":version": position.version},
            )
            work.table.write(measured)
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
