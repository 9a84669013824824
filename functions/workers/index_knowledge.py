"""Index documents that were not indexed with their write, and purge deleted collections.

Deleting a collection writes a purge item. Its insertion deletes what the collection held. Its removal by DynamoDB's
TTL deletes what a late writer has added since.
"""

from contextlib import suppress

from api.deployment import (
    BULK_EMBEDDING_INDEX,
    INDEX_RECOVERY_SECONDS,
    SPLITTING,
    TableStream,
    change,
    lambda_function,
    table,
)
from api.stream_records import StreamRecord, stream_worker
from shared.aws.dynamodb import ConditionFailed, Table, Write
from shared.knowledge import keys
from shared.knowledge.collections import CollectionStore
from shared.knowledge.documents import CollectionDocuments
from shared.platform.config import config
from shared.search.index import knowledge_index


@lambda_function(
    table("Knowledge", "BatchWriteItem", "DeleteItem", "GetItem", "Query", "UpdateItem"),
    BULK_EMBEDDING_INDEX,
    SPLITTING,
    timeout=900,
    stream=TableStream(
        table="Knowledge",
        filters=(
            change("INSERT", "MODIFY", sk={"prefix": keys.INDEX}),
            change("INSERT", "REMOVE", sk={"prefix": keys.PURGE}),
        ),
        batch_size=1,
        max_age=INDEX_RECOVERY_SECONDS,
        parallelization=4,
    ),
)
@stream_worker("workers/index_knowledge")
def handler(record: StreamRecord) -> None:
    """Process the work item of a stream record. The stream retries while the index is unavailable."""
    tenant_id = record.pk.removesuffix(keys.partition("", "work"))
    if record.sk.startswith(keys.PURGE):
        _purge(tenant_id, record.sk.removeprefix(keys.PURGE))
    else:
        _index(tenant_id, record.pk, record.sk)


def _purge(tenant_id: str, collection_id: str) -> None:
    knowledge_index().delete_collection(tenant_id, collection_id)
    CollectionStore(Table(config().knowledge_table), tenant_id).purge(collection_id)


def _index(tenant_id: str, pk: str, sk: str) -> None:
    table = Table(config().knowledge_table)
    work_item = table.get(pk, sk)
    if work_item is None:
        return
    collection = CollectionStore(table, tenant_id).find(work_item["collection"])
    if collection and sk == keys.awaiting_index(collection.id, work_item["path"]):
        CollectionDocuments(table, tenant_id, collection, knowledge_index()).reindex(work_item["path"])
    # A writer that has queued the document again meanwhile has changed the item: its own record follows.
    unchanged = {":at": work_item["at"]}
    with suppress(ConditionFailed):
        table.write(Write("Delete", {"pk": pk, "sk": sk}, "", "#at = :at", unchanged, {"#at": "at"}))
