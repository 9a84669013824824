"""Index new messages, remove deleted ones from the index, and set the subject and the expiry of conversations there.

A deletion puts its record at the place of the message, so that the MODIFY record removes the message and indexes the
two after it, which were read with it, again. The purge of past generations is that of `purge_messages`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from api.deployment import (
    BULK_EMBEDDING_INDEX,
    INDEX_RECOVERY_SECONDS,
    MESSAGE_INDEX,
    TableStream,
    change,
    lambda_function,
    table,
)
from api.stream_records import StreamRecord, batch_worker
from shared.aws.dynamodb import Table
from shared.memory import keys
from shared.memory.conversations import Conversations
from shared.platform.config import config

if TYPE_CHECKING:
    from collections.abc import Sequence


@lambda_function(
    table("Memory", "BatchGetItem", "BatchWriteItem", "DeleteItem", "GetItem", "Query"),
    BULK_EMBEDDING_INDEX,
    MESSAGE_INDEX,
    timeout=300,
    stream=TableStream(
        table="Memory",
        filters=(
            change("INSERT", "MODIFY", sk={"prefix": keys.MESSAGE}),
            change("INSERT", "MODIFY", sk={"prefix": keys.FIELDS}),
        ),
        batch_size=16,
        max_age=INDEX_RECOVERY_SECONDS,
        parallelization=4,
    ),
)
@batch_worker("workers/index_messages")
def handler(records: Sequence[StreamRecord]) -> None:
    """Index the messages of stream records. The stream retries while the index is unavailable."""
    if not config().has_message_index:
        return
    from shared.memory.index import IndexWork, set_queued_fields

    numbers: defaultdict[str, defaultdict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for record in records:
        tenant_id, _, generation = record.pk.partition(keys.messages("", ""))
        if generation:
            numbers[tenant_id][generation].add(keys.number(record.sk))
    for tenant_id, of_generation in numbers.items():
        work = IndexWork(Conversations(Table(config().memory_table), tenant_id))
        for generation, wanted in of_generation.items():
            work.add(generation, wanted)
        work.run()
    for record in records:
        tenant_id = record.pk.removesuffix(keys.fields(""))
        if record.pk == keys.fields(tenant_id):
            set_queued_fields(Conversations(Table(config().memory_table), tenant_id), record.sk)
