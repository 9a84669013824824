"""Index changed experiences that were not indexed with their write."""

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
from shared.experiences import keys
from shared.services.experience_index import index_experience
from shared.telemetry import correlation_id_from, observe

_processor = BatchProcessor(event_type=EventType.DynamoDBStreams, raise_on_entire_batch_failure=False)


@lambda_function(
    table("Experiences", "BatchGetItem", "UpdateItem"),
    SEARCH_INDEX,
    EMBEDDING_MODEL,
    memory=1769,
    timeout=300,
    stream=TableStream(
        table="Experiences",
        filters=(change("INSERT", "MODIFY", pk={"prefix": keys.CONTENT}),),
        batch_size=10,
        max_age=INDEX_RECOVERY_SECONDS,
    ),
)
def handler(event: dict[str, Any], context: Any) -> Any:
    """Index each experience in the stream's records. The stream retries while the index is unavailable."""
    return process_partial_response(event=event, record_handler=_index, processor=_processor, context=context)


def _index(record: Any) -> None:
    with observe("workers/index_experiences", correlation_id_from(record.event_id)):
        index_experience(record.dynamodb.keys["sk"])
