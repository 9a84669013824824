"""The results of the workers of streams in the emulator's stack."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from api.stream_records import StreamRecord
from infra.local.streams import matches_filter
from shared.devices import keys as device_keys
from shared.experiences import keys as experience_keys
from shared.knowledge import keys as knowledge_keys
from shared.memory import keys as memory_keys
from tests.suites.deployment.emulator import STACK, client

if TYPE_CHECKING:
    from collections.abc import Iterator


def unprocessed(url: str) -> list[str]:
    """Return the work that the workers have not done. One conversation may have messages."""
    memory = {item["pk"] for item in items(url, "Memory") if item["sk"].startswith(memory_keys.MESSAGE)}
    results = [item for item in items(url, "Experiences") if item["pk"].startswith(experience_keys.QUERY_RESULT)]
    jobs = [item for item in items(url, "Knowledge") if item["sk"] == knowledge_keys.JOB and item["status"] != "done"]
    events = [item for item in items(url, "Devices") if item["sk"].startswith(device_keys.EVENT)]
    return [
        *(f"not purged: {pk}" for pk in sorted(memory)[1:]),
        *(f"not counted: {item['sk']}" for item in results),
        *(f"not done: {item['pk']}" for item in jobs),
        *(f"not delivered: {item['pk']}" for item in events),
    ]


def unread_records(url: str) -> list[str]:
    """Return the records of streams that are not in the log of their worker."""
    problems = []
    for function, deliveries in _deliveries(url):
        unread = [record["dynamodb"]["Keys"] for record, outcomes in deliveries if not outcomes]
        problems += [f"{function} has not read {keys}" for keys in unread]
        problems += [f"{function} has got no record"] * (not deliveries)
    return problems


def record_counts(url: str) -> dict[str, int]:
    """Return the number of records for each worker."""
    return {function: len(deliveries) for function, deliveries in _deliveries(url)}


def deliver_failed_again(url: str) -> int:
    """Deliver the records again that a worker reported as failed, which the emulator does not. Return their number."""
    failed = [
        (function, record)
        for function, deliveries in _deliveries(url)
        for record, outcomes in deliveries
        if outcomes and "OK" not in outcomes
    ]
    for function, record in failed:
        client("lambda", url).invoke(FunctionName=function, Payload=json.dumps({"Records": [record]}))
    return len(failed)


def items(url: str, table: str) -> Iterator[dict[str, str]]:
    """Yield the texts of each item of a table."""
    for page in client("dynamodb", url).get_paginator("scan").paginate(TableName=table_name(url, table)):
        for item in page["Items"]:
            yield {name: value["S"] for name, value in item.items() if "S" in value}


def table_name(url: str, table: str) -> str:
    """Return the name of the stack's table."""
    names = client("dynamodb", url).list_tables()["TableNames"]
    return str(next(name for name in names if name.startswith(f"{STACK}-{table}Table-")))


def _deliveries(url: str) -> Iterator[tuple[str, list[tuple[dict[str, Any], set[str]]]]]:
    """Yield each worker with the records that pass its filters, and their outcomes in its log."""
    for mapping in client("lambda", url).list_event_source_mappings()["EventSourceMappings"]:
        function = mapping["FunctionArn"].rpartition(":")[2]
        patterns = [json.loads(each["Pattern"]) for each in mapping["FilterCriteria"]["Filters"]]
        outcomes = _outcomes(url, function)
        yield (
            function,
            [
                # Earlier versions log the event's own id.
                (record, outcomes[record["eventID"]] | outcomes[StreamRecord.parse(record).correlation_id])
                for record in _records(url, mapping["EventSourceArn"])
                if any(matches_filter(pattern, record) for pattern in patterns)
            ],
        )


def _records(url: str, stream: str) -> Iterator[dict[str, Any]]:
    """Yield the records of a stream."""
    streams = client("dynamodbstreams", url)
    for shard in streams.describe_stream(StreamArn=stream)["StreamDescription"]["Shards"]:
        place = {"StreamArn": stream, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        iterator = streams.get_shard_iterator(**place)["ShardIterator"]
        while iterator and (page := streams.get_records(ShardIterator=iterator))["Records"]:
            for record in page["Records"]:
                del record["dynamodb"]["ApproximateCreationDateTime"]  # a worker gets it as a number
                yield record
            iterator = page.get("NextShardIterator")


def _outcomes(url: str, function: str) -> dict[str, set[str]]:
    """Return the outcomes in the log of a worker, by the correlation id of the record."""
    group = f"/kho/{STACK}/{function.removeprefix(f'{STACK}-')}"
    outcomes = defaultdict[str, set[str]](set)
    for page in client("logs", url).get_paginator("filter_log_events").paginate(logGroupName=group):
        for event in page["events"]:
            line = json.loads(event["message"]) if event["message"].startswith("{") else {}
            if "outcome" in line:
                outcomes[line["correlation_id"]].add(line["outcome"])
    return outcomes
