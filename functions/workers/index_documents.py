"""Index changed documents of agent-data that were not indexed with their write, and remove deleted ones."""

import math
from typing import Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response

from api.deployment import (
    EMBEDDING_MODEL,
    INDEX_RECOVERY_SECONDS,
    SEARCH_INDEX,
    TableStream,
    change,
    lambda_function,
    table,
)
from shared.config import config
from shared.documents import keys
from shared.documents.deletion import schedule_deletion_event
from shared.dynamodb import Table
from shared.services.document_index import refresh_document
from shared.telemetry import correlation_id_from, observe

_processor = BatchProcessor(event_type=EventType.DynamoDBStreams, raise_on_entire_batch_failure=False)


@lambda_function(
    table("Documents", "GetItem", "PutItem", "Query"),
    SEARCH_INDEX,
    EMBEDDING_MODEL,
    memory=1769,
    timeout=900,
    stream=TableStream(
        table="Documents",
        filters=(
            change(sk="document"),
            change("REMOVE", sk="deletion"),
        ),
        batch_size=10,
        max_age=INDEX_RECOVERY_SECONDS,
        parallelization=4,
    ),
)
def handler(event: dict[str, Any], context: Any) -> Any:
    """Index each document in the stream's records. The stream retries while the index is unavailable."""
    return process_partial_response(event=event, record_handler=_index, processor=_processor, context=context)


def _index(record: Any) -> None:
    tenant_id, document_id = keys.document_of(record.dynamodb.keys["pk"])
    with observe("workers/index_documents", correlation_id_from(record.event_id), budget=math.inf):
        if not config().has_index:
            return
        schedule_deletion_event(Table(config().documents_table), tenant_id, document_id)
        refresh_document(tenant_id, document_id)
