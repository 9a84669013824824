"""Calls to recall-kit's handlers, and the documented ranking to compare their results with."""

from __future__ import annotations

import importlib
import math
from datetime import UTC, datetime
from typing import Any

from shared.rpc.caller import ANONYMOUS, LOCAL, Caller

QueryResult = dict[str, Any]


def call_method(method: str, caller: Caller = LOCAL, /, **params: Any) -> Any:
    """Return the response of the function `recall-kit/{method}`."""
    handler = importlib.import_module(f"recall_kit.{method}").handler
    call = {"method": method, "params": params, "caller": caller.record(), "correlation_id": "test-of-recall-kit"}
    return handler(call, None)


def call_successfully(method: str, caller: Caller = ANONYMOUS, /, **params: Any) -> Any:
    """Return the data of a call that succeeds."""
    answer = call_method(method, caller, **params)
    assert answer["result"]["success"] is True, answer
    return answer["result"]["data"]


def submit_experience(title: str, problem: str = "It fails.", solution: str = "Mend it.", **more: Any) -> str:
    """Submit an experience and return its id."""
    id_: str = call_successfully(
        "submit_experience", LOCAL, title=title, problem_description=problem, solution=solution, **more
    )["id"]
    return id_


def query_all_pages(keywords: str, limit: int) -> list[QueryResult]:
    """Return all results of a query, page by page."""
    results: list[QueryResult] = []
    while page := call_successfully("query_experiences", keywords=keywords, limit=limit, offset=len(results))[
        "experiences"
    ]:
        results += page
    return results


def final_score(shown: QueryResult, asked_at: datetime) -> float:
    """Return the score by which docs/experiences.md ranks a record."""
    month = asked_at.astimezone(UTC)
    end = datetime(month.year + month.month // 12, month.month % 12 + 1, 1, tzinfo=UTC)
    age = end - datetime.fromisoformat(shown["created_at"])
    count = min(1.0, math.log(1 + shown["query_count"]) / math.log(1_000_001))
    recency = 0.5 ** (max(0.0, age.total_seconds()) / (180 * 86400))
    return float(shown["relevance_score"] * 0.6 + count * 0.3 + recency * 0.1)


def is_ranked(found: list[QueryResult], asked_at: datetime) -> bool:
    """Return True if records are sorted by score, and by age (newest first) if scores are equal."""
    ranks = [
        (-round(final_score(each, asked_at), 12), -datetime.fromisoformat(each["created_at"]).timestamp())
        for each in found
    ]
    return ranks == sorted(ranks)
