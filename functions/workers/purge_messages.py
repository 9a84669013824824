"""Delete the messages and summaries of past generations.

Each clearing and deletion of a conversation adds a purge item. Its INSERT record deletes the existing items. Its
REMOVE record, when the TTL expires, deletes items that a concurrent writer has added since.
"""

import math
from typing import Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response

from api.deployment import TableStream, change, lambda_function, table
from shared.config import config
from shared.dynamodb import Table
from shared.memory import keys
from shared.memory.conversations import Conversations
from shared.telemetry import correlation_id_from, observe

_processor = BatchProcessor(event_type=EventType.DynamoDBStreams, raise_on_entire_batch_failure=False)


@lambda_function(
    table("Memory", "BatchWriteItem", "Query"),
    timeout=300,
    stream=TableStream(
        table="Memory",
        filters=(change("INSERT", "REMOVE", sk={"prefix": keys.PURGE}),),
        batch_size=10,
        max_retries=10,
        event="Purges",
    ),
)
def handler(event: dict[str, Any], context: Any) -> Any:
    """Purge every generation in a batch of stream records. Failed records are delivered again."""
    return process_partial_response(event=event, record_handler=_purge, processor=_processor, context=context)


def _purge(record: Any) -> None:
    tenant_id = record.dynamodb.keys["pk"].removesuffix(keys.purges(""))
    generation = record.dynamodb.keys["sk"].removeprefix(keys.PURGE)
    with observe("workers/purge_messages", correlation_id_from(record.event_id), budget=math.inf):
        Conversations(Table(config().memory_table), tenant_id).purge(generation)
