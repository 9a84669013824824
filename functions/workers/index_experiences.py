"""Index changed experiences that were not indexed with their write."""

from api.deployment import BULK_EMBEDDING_INDEX, INDEX_RECOVERY_SECONDS, TableStream, change, lambda_function, table
from api.stream_records import StreamRecord, stream_worker
from shared.experiences import keys
from shared.experiences.index import index_experience


@lambda_function(
    table("Experiences", "BatchGetItem", "UpdateItem"),
    BULK_EMBEDDING_INDEX,
    timeout=300,
    stream=TableStream(
        table="Experiences",
        filters=(change("INSERT", "MODIFY", pk={"prefix": keys.CONTENT}),),
        batch_size=10,
        max_age=INDEX_RECOVERY_SECONDS,
    ),
)
@stream_worker("workers/index_experiences")
def handler(record: StreamRecord) -> None:
    """Index the experience of a stream record. The stream retries while the index is unavailable."""
    index_experience(record.sk)
