"""Delete what lay in collections that are gone.

A purge item comes with each deletion. Its coming deletes what is there; its going, by its time to live, deletes what a
writer that was still under way has put there since.
"""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response

from shared.config import config
from shared.dynamodb import Table
from shared.knowledge import keys
from shared.knowledge.collections import Collections
from shared.knowledge.index import knowledge_index
from shared.telemetry import correlation_id_from, observe

_processor = BatchProcessor(event_type=EventType.DynamoDBStreams, raise_on_entire_batch_failure=False)


def handler(event: dict[str, Any], context: Any) -> Any:
    """Purge every collection that the stream says is gone; what fails is delivered again."""
    return process_partial_response(event=event, record_handler=_purge, processor=_processor, context=context)


def _purge(record: Any) -> None:
    tenant_id = record.dynamodb.keys["pk"].removesuffix(keys.work(""))
    collection_id = record.dynamodb.keys["sk"].removeprefix(keys.PURGE)
    with observe("workers/purge_knowledge", correlation_id_from(record.event_id)):
        knowledge_index().delete_collection(tenant_id, collection_id)
        Collections(Table(config().knowledge_table), tenant_id).purge(collection_id)
