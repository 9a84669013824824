"""Many documents or messages, written into the store of a running server at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.aws.blob_store import compress
from shared.aws.dynamodb import Table, Write, to_item
from shared.documents import fractional_index, keys
from shared.documents.sibling_order import listing_write
from shared.documents.tree import TreePosition
from shared.documents.unit_of_work import DocumentHead, UnitOfWork
from shared.memory import keys as memory_keys
from shared.memory.conversations import Conversations
from shared.platform.clock import now
from shared.rpc import timestamps
from tests.helpers.dynamodb import store_of

if TYPE_CHECKING:
    from pathlib import Path

_PER_TRANSACTION = 25
"""Each document takes four of the 100 writes of a transaction."""
_MESSAGES_PER_TRANSACTION = 100


def seed_children(data: Path, tenant: str, parent_id: str, count: int) -> list[str]:
    """Create `count` documents without text below one that has none yet. Return their ids in order."""
    with store_of(data):
        work = UnitOfWork(Table("kho-DocumentsTable"), tenant)
        pairs = [
            (f"{parent_id}-{number:05}", key) for number, key in enumerate(fractional_index.spread(None, None, count))
        ]
        for start in range(0, count, _PER_TRANSACTION):
            writes = [_writes(work, parent_id, *pair) for pair in pairs[start : start + _PER_TRANSACTION]]
            work.commit(*(write for each in writes for write in each))
        if parent_id != keys.ROOT:
            raised = Write("Update", work.tree.key(parent_id), expression="SET height = :one", values={":one": 1})
            work.table.write(raised)
    return [id_ for id_, _ in pairs]


def seed_messages(data: Path, tenant: str, conversation_id: str, count: int) -> None:
    """Write `count` messages into a new conversation, which holds them as if they had been added one by one."""
    with store_of(data):
        conversations = Conversations(Table("kho-MemoryTable"), tenant)
        conversations.get_or_create(conversation_id)
        partition = memory_keys.messages(tenant, conversations.require(conversation_id).generation)
        for start in range(1, count + 1, _MESSAGES_PER_TRANSACTION):
            numbers = range(start, min(start + _MESSAGES_PER_TRANSACTION, count + 1))
            items = (
                {"sk": memory_keys.message(number), "role": "user", "content": f"message-{number}", "at": now()}
                for number in numbers
            )
            conversations.table.transact(*(Write("Put", {"pk": partition} | item) for item in items))
        header = {"pk": memory_keys.conversation(tenant, conversation_id), "sk": memory_keys.HEADER}
        counted = Write(
            "Update",
            header,
            expression="SET last_number = :count, counted_to = :count, preview = :preview",
            values={":count": count, ":preview": f"message-{count}"},
        )
        conversations.table.write(counted)


def _writes(work: UnitOfWork, parent_id: str, document_id: str, order_key: str) -> list[Write]:
    created_at = timestamps.now()
    head = DocumentHead(
        document_id=document_id,
        parent_id=parent_id,
        revision=1,
        content_revision=1,
        mime_type="text/plain",
        metadata="{}",
        is_human_readable=True,
        created_at=created_at,
        updated_at=created_at,
    )
    position = TreePosition(document_id=document_id, parent_id=parent_id, order_key=order_key)
    content = {
        "pk": keys.document(work.tenant_id, document_id),
        "sk": keys.content(1),
        "mime_type": "text/plain",
        "metadata": "{}",
        "is_human_readable": True,
        "body": compress(""),
    }
    return [
        Write("Put", work.key(document_id) | to_item(head)),
        Write("Put", work.tree.key(document_id) | to_item(position)),
        listing_write(work.tree, position),
        Write("Put", content),
    ]
