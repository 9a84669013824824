"""Delete the messages and summaries of past generations, of expired conversations, and of erased subjects.

Each clearing and deletion of a conversation adds a purge item. Its INSERT record deletes the existing items. Its
REMOVE record, when the TTL expires, deletes items that a concurrent writer has added since. An expiry item goes by its
TTL when the purge of its conversation is due. An erasure item changes until no conversation of its subject is left.
"""

from api.deployment import MESSAGE_INDEX, SEARCH_INDEX, STREAM_SECONDS, TableStream, change, lambda_function, table
from api.stream_records import StreamRecord, stream_worker
from shared.aws.dynamodb import Table, Write
from shared.memory import keys
from shared.memory.conversations import Conversations
from shared.platform.clock import now
from shared.platform.config import config

_CONVERSATIONS_AT_ONCE = 100
"""The conversations of an erased subject that one invocation deletes."""


@lambda_function(
    SEARCH_INDEX,
    MESSAGE_INDEX,
    table("Memory", "BatchWriteItem", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"),
    timeout=300,
    stream=TableStream(
        table="Memory",
        filters=(
            change("INSERT", "REMOVE", sk={"prefix": keys.PURGE}),
            change("REMOVE", sk={"prefix": keys.EXPIRY}),
            change("INSERT", "MODIFY", sk={"prefix": keys.ERASURE}),
        ),
        batch_size=10,
        max_age=STREAM_SECONDS,
        event="Purges",
    ),
)
@stream_worker("workers/purge_messages")
def handler(record: StreamRecord) -> None:
    """Purge what a stream record names."""
    tenant_id = record.pk.rpartition("#")[0]
    conversations = Conversations(Table(config().memory_table), tenant_id)
    if record.pk == keys.purges(tenant_id):
        conversations.purge(record.sk.removeprefix(keys.PURGE))
    elif record.pk == keys.expiries(tenant_id):
        generation, _, conversation_id = record.sk.removeprefix(keys.EXPIRY).partition("#")
        conversations.purge_expired(conversation_id, generation)
    elif record.pk == keys.erasures(tenant_id):
        _erase(conversations, record)


def _erase(conversations: Conversations, record: StreamRecord) -> None:
    item = {"pk": record.pk, "sk": record.sk}
    if conversations.purge_subject(record.sk.rpartition("#")[2], _CONVERSATIONS_AT_ONCE):
        conversations.table.write(Write("Delete", item))
    else:
        conversations.table.write(Write("Update", item, "SET continued_at = :now", values={":now": now()}))
