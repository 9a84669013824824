"""Index changed experiences that were not indexed with their write."""

from typing import Any

from api.deployment import EMBEDDING_INDEX, INDEX_RECOVERY_SECONDS, TableStream, change, lambda_function, table
from api.stream_records import stream_worker
from shared.experiences import keys
from shared.services.experience_index import index_experience
from shared.telemetry import correlation_id_from, observe


@lambda_function(
    table("Experiences", "BatchGetItem", "UpdateItem"),
    EMBEDDING_INDEX,
    timeout=300,
    stream=TableStream(
        table="Experiences",
        filters=(change("INSERT", "MODIFY", pk={"prefix": keys.CONTENT}),),
        batch_size=10,
        max_age=INDEX_RECOVERY_SECONDS,
    ),
)
@stream_worker
def handler(record: Any) -> None:
    """Index the experience of a stream record. The stream retries while the index is unavailable."""
    with observe("workers/index_experiences", correlation_id_from(record.event_id)):
        index_experience(record.dynamodb.keys["sk"])
