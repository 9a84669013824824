"""Delete the messages and summaries of past generations.

Each clearing and deletion of a conversation adds a purge item. Its INSERT record deletes the existing items. Its
REMOVE record, when the TTL expires, deletes items that a concurrent writer has added since.
"""

from api.deployment import STREAM_SECONDS, TableStream, change, lambda_function, table
from api.stream_records import StreamRecord, stream_worker
from shared.aws.dynamodb import Table
from shared.memory import keys
from shared.memory.conversations import Conversations
from shared.platform.config import config


@lambda_function(
    table("Memory", "BatchWriteItem", "Query"),
    timeout=300,
    stream=TableStream(
        table="Memory",
        filters=(change("INSERT", "REMOVE", sk={"prefix": keys.PURGE}),),
        batch_size=10,
        max_age=STREAM_SECONDS,
        event="Purges",
    ),
)
@stream_worker("workers/purge_messages")
def handler(record: StreamRecord) -> None:
    """Purge the generation of a stream record."""
    tenant_id = record.pk.removesuffix(keys.purges(""))
    Conversations(Table(config().memory_table), tenant_id).purge(record.sk.removeprefix(keys.PURGE))
