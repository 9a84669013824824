"""Records of DynamoDB streams, which a worker processes one by one."""

from collections.abc import Callable
from typing import Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response


def stream_worker(process: Callable[[Any], None]) -> Callable[[dict[str, Any], Any], Any]:
    """Make a function of one record the Lambda handler of a batch. The stream delivers failed records again."""
    processor = BatchProcessor(event_type=EventType.DynamoDBStreams, raise_on_entire_batch_failure=False)

    def handler(event: dict[str, Any], context: Any) -> Any:
        return process_partial_response(event=event, record_handler=process, processor=processor, context=context)

    return handler
