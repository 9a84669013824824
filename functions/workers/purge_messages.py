"""Delete the messages and summaries of generations that are over.

A purge item comes with each clearing and deletion. Its coming deletes what is there; its going, by its time
to live, deletes what a writer that was still under way has put there since.
"""

from __future__ import annotations

import math
from typing import Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response

from shared.config import config
from shared.dynamodb import Table
from shared.memory import keys
from shared.memory.conversations import Conversations
from shared.telemetry import correlation_id_from, observe

_processor = BatchProcessor(event_type=EventType.DynamoDBStreams, raise_on_entire_batch_failure=False)


def handler(event: dict[str, Any], context: Any) -> Any:
    """Purge every generation that the stream says is over; what fails is delivered again."""
    return process_partial_response(event=event, record_handler=_purge, processor=_processor, context=context)


def _purge(record: Any) -> None:
    tenant_id = record.dynamodb.keys["pk"].removesuffix(keys.purges(""))
    generation = record.dynamodb.keys["sk"].removeprefix(keys.PURGE)
    with observe("workers/purge_messages", correlation_id_from(record.event_id), budget=math.inf):
        Conversations(Table(config().memory_table), tenant_id).purge(generation)
