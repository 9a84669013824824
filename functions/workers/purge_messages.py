"""Delete the messages and summaries of past generations.

Each clearing and deletion of a conversation adds a purge item. Its INSERT record deletes the existing items. Its
REMOVE record, when the TTL expires, deletes items that a concurrent writer has added since.
"""

import math
from typing import Any

from api.deployment import TableStream, change, lambda_function, table
from api.stream_records import stream_worker
from shared.config import config
from shared.dynamodb import Table
from shared.memory import keys
from shared.memory.conversations import Conversations
from shared.telemetry import correlation_id_from, observe


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
@stream_worker
def handler(record: Any) -> None:
    """Purge the generation of a stream record."""
    tenant_id = record.dynamodb.keys["pk"].removesuffix(keys.purges(""))
    generation = record.dynamodb.keys["sk"].removeprefix(keys.PURGE)
    with observe("workers/purge_messages", correlation_id_from(record.event_id), budget=math.inf):
        Conversations(Table(config().memory_table), tenant_id).purge(generation)
