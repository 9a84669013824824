"""Index the documents of collections that the index did not take when they were written."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response

from shared.config import config
from shared.dynamodb import Table, Write
from shared.knowledge import keys
from shared.knowledge.collections import Collections
from shared.knowledge.documents import Documents
from shared.knowledge.index import knowledge_index
from shared.telemetry import correlation_id_from, observe

_processor = BatchProcessor(event_type=EventType.DynamoDBStreams, raise_on_entire_batch_failure=False)


def handler(event: dict[str, Any], context: Any) -> Any:
    """Index each document that the stream says is waiting; while the index does not answer, it is delivered again."""
    return process_partial_response(event=event, record_handler=_index, processor=_processor, context=context)


def _index(record: Any) -> None:
    pk, sk = record.dynamodb.keys["pk"], record.dynamodb.keys["sk"]
    tenant_id = pk.removesuffix(keys.work(""))
    with observe("workers/index_knowledge", correlation_id_from(record.event_id)):
        table = Table(config().knowledge_table)
        waiting = table.get(pk, sk)
        if waiting is None:
            return
        collection = Collections(table, tenant_id).find(waiting["collection"])
        if collection and sk == keys.awaiting_index(collection.id, waiting["path"]):
            Documents(table, tenant_id, collection, knowledge_index()).reindex(waiting["path"])
        table.write(Write("Delete", {"pk": pk, "sk": sk}))
