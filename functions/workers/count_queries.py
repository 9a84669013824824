"""Count the experiences that queries have returned, exactly once despite repeated stream records."""

from typing import Any

from api.deployment import INDEX_RECOVERY_SECONDS, SEARCH_INDEX, TableStream, change, lambda_function, table
from shared.experiences import keys
from shared.experiences.query_counts import QueryCounts
from shared.experiences.repository import experiences_table
from shared.rpc.errors import KhoError
from shared.services.experience_index import refresh_counts
from shared.telemetry import correlation_id_from, observe


@lambda_function(
    table("Experiences", "BatchGetItem", "BatchWriteItem", "UpdateItem"),
    SEARCH_INDEX,
    timeout=300,
    stream=TableStream(
        table="Experiences",
        filters=(change("INSERT", pk={"prefix": keys.QUERY_RESULT}),),
        batch_size=100,
        max_age=INDEX_RECOVERY_SECONDS,
    ),
)
def handler(event: dict[str, Any], _context: Any) -> Any:
    """Count all query results in a batch of stream records. If that fails, request the whole batch again."""
    records = event["Records"]
    result_keys = [tuple(record["dynamodb"]["Keys"][name]["S"] for name in ("pk", "sk")) for record in records]
    try:
        with observe("workers/count_queries", correlation_id_from(records[0].get("eventID"))):
            QueryCounts(experiences_table()).count(result_keys, refresh_counts)
    except KhoError:
        return {"batchItemFailures": [{"itemIdentifier": records[0]["dynamodb"]["SequenceNumber"]}]}
    return {"batchItemFailures": []}
