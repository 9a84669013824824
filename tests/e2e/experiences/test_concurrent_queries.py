"""Many queries concurrent with many submissions."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.helpers.kho_server import KhoServer
from tests.helpers.size import sized
from tests.helpers.wait import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from pathlib import Path

QUERIES = sized(24, full=1000)
SUBMISSIONS = sized(3, full=50)
AT_ONCE = 16
BEFORE = 20
TOPICS = ("kafka consumer lag", "postgres deadlock", "react state stale", "nginx 502 upstream", "docker disk full")


def call(server: KhoServer, method: str, **params: Any) -> Any:
    """Return the data of a call that succeeds."""
    response = server.post(f"/recall-kit/{method}", json.dumps(params).encode())
    assert response.status == 200, response.data
    return json.loads(response.data)["data"]


def submit(server: KhoServer, number: int) -> str:
    topic = TOPICS[number % len(TOPICS)]
    title = f"The {topic}, seen for the time {number}"
    experience = {"title": title, "problem_description": f"{topic} again.", "solution": "Mend it."}
    id_: str = call(server, "submit_experience", **experience)["id"]
    return id_


def counts(server: KhoServer, ids: set[str]) -> Counter[str]:
    with ThreadPoolExecutor(8) as pool:
        records = pool.map(lambda id_: call(server, "get_experience", id=id_), sorted(ids))
        return Counter({each["id"]: each["query_count"] for each in records})


def query_ids(server: KhoServer, number: int) -> list[str]:
    """Return the ids of a query's results, at the highest limit."""
    data = call(server, "query_experiences", keywords=TOPICS[number % len(TOPICS)], limit=1 + number % 50)
    return [each["id"] for each in data["experiences"]]


@pytest.mark.stress
def test_counts_are_exact_under_concurrent_queries(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Every query and submission is answered, and every experience is counted as often as it was returned."""
    with KhoServer(tmp_path / "data") as server:
        ids = {submit(server, number) for number in range(BEFORE)}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            asking: list[Future[list[str]]] = []
            submitting: list[Future[str]] = []
            for number in range(QUERIES):
                asking.append(pool.submit(query_ids, server, number))
                if number % (QUERIES // SUBMISSIONS) == 0 and len(submitting) < SUBMISSIONS:
                    submitting.append(pool.submit(submit, server, BEFORE + len(submitting)))
            answers = [each.result() for each in asking]
            ids |= {each.result() for each in submitting}
        assert len(ids) == BEFORE + SUBMISSIONS
        assert all(answers)
        # A query now finds the new submissions. The last query is counted last.
        answers += [query_ids(server, number) for number in range(49, 49 + len(TOPICS))]
        expected = Counter(id_ for answer in answers for id_ in answer)
        assert set(expected) <= ids
        until(lambda: +counts(server, ids) == expected)
    record_property("load", f"{QUERIES} queries with {SUBMISSIONS} submissions, {AT_ONCE} at once")
    record_property("outcome", f"none refused; all {sum(expected.values())} results counted")
