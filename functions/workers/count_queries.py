"""Count what queries have returned, after they have answered, each once however often the stream brings it."""

from __future__ import annotations

from typing import Any

from recall_kit import table
from recall_kit.finding import recount
from shared.experiences.counting import Counting
from shared.rpc.errors import KhoError
from shared.telemetry import correlation_id_from, observe


def handler(event: dict[str, Any], _context: Any) -> Any:
    """Count all that this batch of the stream's records names; where that fails, all of it is delivered again."""
    records = event["Records"]
    noted = [tuple(record["dynamodb"]["Keys"][name]["S"] for name in ("pk", "sk")) for record in records]
    try:
        with observe("workers/count_queries", correlation_id_from(records[0].get("eventID"))):
            Counting(table()).count(noted, recount)
    except KhoError:
        return {"batchItemFailures": [{"itemIdentifier": records[0]["dynamodb"]["SequenceNumber"]}]}
    return {"batchItemFailures": []}
