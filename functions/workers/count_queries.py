"""Count the experiences that queries have returned, exactly once despite repeated stream records."""

from collections.abc import Sequence

from api.deployment import INDEX_RECOVERY_SECONDS, SEARCH_INDEX, TableStream, change, lambda_function, table
from api.stream_records import StreamRecord, batch_worker
from shared.experiences import keys
from shared.experiences.index import refresh_counts
from shared.experiences.query_counts import QueryCounts
from shared.experiences.repository import experiences_table


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
@batch_worker("workers/count_queries")
def handler(records: Sequence[StreamRecord]) -> None:
    """Count all query results in a batch of stream records."""
    QueryCounts(experiences_table()).count([(each.pk, each.sk) for each in records], refresh_counts)
