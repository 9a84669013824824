"""The counts that queries have recorded, their stream events, and an index that is down."""

from __future__ import annotations

from typing import Any

from shared.experiences.repository import experiences_table
from shared.rpc.errors import Unavailable
from tests.helpers.dynamodb import boto3_client
from tests.helpers.experience_client import call_successfully
from workers import count_queries


def pending_counts(store: str) -> list[dict[str, Any]]:
    """Return the keys of recorded query results that are not counted yet."""
    pages = boto3_client(store).get_paginator("scan").paginate(TableName=experiences_table().name, ConsistentRead=True)
    items = [item for page in pages for item in page["Items"] if item["pk"]["S"].startswith("served#")]
    return [{"pk": item["pk"], "sk": item["sk"]} for item in items]


def stream_event(*keys: Any) -> dict[str, Any]:
    """Return the stream's event for the items under `keys`."""
    return {
        "Records": [
            {"eventID": "1", "eventName": "INSERT", "dynamodb": {"Keys": key, "SequenceNumber": str(number)}}
            for number, key in enumerate(keys)
        ]
    }


def count_all(store: str) -> None:
    """Count all that is recorded."""
    keys = pending_counts(store)
    assert not keys or count_queries.handler(stream_event(*keys), None) == {"batchItemFailures": []}


def counts(*ids: str) -> list[int]:
    """Return the number of times that each of these was returned, as counted so far."""
    return [call_successfully("get_experience", id=id_)["query_count"] for id_ in ids]


def unavailable_index() -> Any:
    """Return an index that is down."""
    raise Unavailable("The vector store is not answering.")
