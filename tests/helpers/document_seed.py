"""Many documents, written into the store of a running server at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3

from infra.local.data_folder import read_server_info
from shared import dynamodb
from shared.blob_store import compress
from shared.documents import fractional_index, keys, timestamps
from shared.documents.sibling_order import listing_write
from shared.documents.tree import TreePosition
from shared.documents.unit_of_work import DocumentHead, UnitOfWork
from shared.dynamodb import Table, Write, to_item
from tests.helpers.dynamodb import tcp_url

if TYPE_CHECKING:
    from pathlib import Path

_PER_TRANSACTION = 25
"""Each document takes four of the 100 writes of a transaction."""


def seed_children(data: Path, tenant: str, parent_id: str, count: int) -> list[str]:
    """Create `count` documents without text below one that has none yet. Return their ids in order."""
    running = read_server_info(data)
    assert running
    anyone = boto3.Session("local", "local", region_name="us-east-1")
    dynamodb.override_client(anyone.client("dynamodb", endpoint_url=tcp_url(running["store_url"])))
    try:
        work = UnitOfWork(Table("kho-DocumentsTable"), tenant)
        pairs = [
            (f"{parent_id}-{number:05}", key) for number, key in enumerate(fractional_index.spread(None, None, count))
        ]
        for start in range(0, count, _PER_TRANSACTION):
            writes = [_writes(work, parent_id, *pair) for pair in pairs[start : start + _PER_TRANSACTION]]
            work.commit(*(write for each in writes for write in each))
        raised = Write("Update", work.tree.key(parent_id), expression="SET height = :one", values={":one": 1})
        work.table.write(raised)
    finally:
        dynamodb.override_client(None)
    return [id_ for id_, _ in pairs]


def _writes(work: UnitOfWork, parent_id: str, document_id: str, order_key: str) -> list[Write]:
    now = timestamps.now()
    head = DocumentHead(
        document_id=document_id,
        parent_id=parent_id,
        revision=1,
        content_revision=1,
        mime_type="text/plain",
        metadata="{}",
        is_human_readable=True,
        created_at=now,
        updated_at=now,
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
