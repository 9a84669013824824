"""Many who ask beside many who submit: nobody is refused, and in the end every count is exact."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from tests.e2e.server import Server

if TYPE_CHECKING:
    from pathlib import Path

RUNS = int(os.environ.get("KHO_TEST_RUNS", "1"))
"""20 runs are a thousand queries beside fifty submissions, all at once."""
QUERIES = 50 * RUNS
SUBMISSIONS = 5 * RUNS // 2
BEFORE = 20
TOPICS = ("kafka consumer lag", "postgres deadlock", "react state stale", "nginx 502 upstream", "docker disk full")
COUNTED_WITHIN_SECONDS = 120


def asked(server: Server, method: str, **params: Any) -> Any:
    """The data that a call answers, which has to succeed."""
    response = server.post(f"/recall-kit/{method}", json.dumps(params).encode())
    assert response.status == 200, response.data
    return json.loads(response.data)["data"]


def submitted(server: Server, number: int) -> str:
    topic = TOPICS[number % len(TOPICS)]
    title = f"The {topic}, seen for the time {number}"
    told = {"title": title, "problem_description": f"{topic} again.", "solution": "Mend it."}
    id_: str = asked(server, "submit_experience", **told)["id"]
    return id_


def counts(server: Server, ids: set[str]) -> Counter[str]:
    with ThreadPoolExecutor(8) as pool:
        shown = pool.map(lambda id_: asked(server, "get_experience", id=id_), sorted(ids))
        return Counter({each["id"]: each["query_count"] for each in shown})


def returned(server: Server, number: int) -> list[str]:
    """The ids that a query answers, as many as it may."""
    found = asked(server, "query_experiences", keywords=TOPICS[number % len(TOPICS)], limit=1 + number % 50)
    return [each["id"] for each in found["experiences"]]


def test_counts_are_exact_however_many_ask_at_once(tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server:
        ids = {submitted(server, number) for number in range(BEFORE)}
        began = time.monotonic()
        with ThreadPoolExecutor(QUERIES + SUBMISSIONS) as pool:
            asking = [pool.submit(returned, server, number) for number in range(QUERIES)]
            submitting = [pool.submit(submitted, server, BEFORE + number) for number in range(SUBMISSIONS)]
            answers = [each.result() for each in asking]
            ids |= {each.result() for each in submitting}
        took = time.monotonic() - began
        assert len(ids) == BEFORE + SUBMISSIONS
        assert all(answers)
        # Whatever was submitted meanwhile is found now, and what is asked last is counted last.
        answers += [returned(server, number) for number in range(49, 49 + len(TOPICS))]
        expected = Counter(id_ for answer in answers for id_ in answer)
        assert set(expected) <= ids
        deadline = time.monotonic() + COUNTED_WITHIN_SECONDS
        while (counted := +counts(server, ids)) != expected and time.monotonic() < deadline:
            time.sleep(0.2)
        assert counted == expected
        print(
            f"{QUERIES} queries beside {SUBMISSIONS} submissions in {took:.1f} s, no error; "
            f"{sum(counted.values())} counted of {sum(expected.values())} returned"
        )
