"""A query counts each result that it returns, and returns no result that it could not count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from recall_kit import query_experiences
from shared.experiences.index import refresh_counts
from shared.experiences.query_counts import QueryCounts
from shared.experiences.repository import experiences_table
from shared.platform.clock import now
from tests.helpers.dynamodb_requests import answer_operation, intercept_requests
from tests.helpers.experience_client import call_method, call_successfully, query_all_pages, submit_experience
from tests.helpers.mcp_events import event, response_message
from tests.helpers.query_counts import count_all, counts, pending_counts, stream_event
from tests.helpers.store_faults import FAILED
from tests.helpers.wait import until
from workers import count_queries

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def counted(store: str) -> Iterator[None]:
    """Count the queries of other tests before this one begins."""
    count_all(store)
    yield
    count_all(store)


@pytest.mark.usefixtures("counted")
def test_each_returned_record_is_counted_once_per_query(store: str) -> None:
    ids = [submit_experience(f"Grafana panel is empty {number}", "No data.") for number in range(60)]
    before = {id_: call_successfully("get_experience", id=id_)["updated_at"] for id_ in ids}
    until(lambda: now() > max(before.values()))
    returned = [
        each["id"]
        for limit, offset in ((50, 0), (50, 0), (10, 20))
        for each in call_successfully("query_experiences", keywords="grafana panel empty", limit=limit, offset=offset)[
            "experiences"
        ]
    ]
    assert counts(*ids) == [0] * 60
    keys = pending_counts(store)
    assert len(keys) == 3
    event = stream_event(*keys, *keys)
    for _ in range(2):  # delivered again after success
        assert count_queries.handler(event, None) == {"batchItemFailures": []}
    assert pending_counts(store) == []
    assert counts(*ids) == [returned.count(id_) for id_ in ids]
    for id_ in set(returned):
        assert call_successfully("get_experience", id=id_)["updated_at"] > before[id_]


@pytest.mark.usefixtures("counted")
def test_oversized_result_is_rejected_and_not_counted(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [submit_experience(f"Quoting is doubled {number}", "x" * 1000) for number in range(6)]
    monkeypatch.setattr("recall_kit.query_experiences.MAX_PAGE_BYTES", 5_000)
    answer = call_method("query_experiences", keywords="quoting is doubled", limit=50)
    assert (answer["error"]["kind"], "limit" in answer["error"]["guidance"]) == ("TooLarge", True)
    assert pending_counts(store) == []
    assert len(query_all_pages("quoting is doubled", 3)) == len(ids)


def test_ranking_uses_current_counts_when_the_index_lags(store: str) -> None:
    first, second = (submit_experience(f"Jenkins agent offline {number}", "It is offline.") for number in "ab")
    for _ in range(40):
        QueryCounts(experiences_table()).record_result([first])
    count_all(store)
    refresh_counts([first, second, "of an experience that is not there"])
    experiences = call_successfully("query_experiences", keywords="jenkins agent offline")["experiences"]
    assert [(each["id"], each["query_count"]) for each in experiences] == [(first, 40), (second, 0)]


def test_unrecordable_count_is_a_database_error(store: str) -> None:
    """Every answer is counted."""
    submit_experience("Flaky DNS in a pod", "Names fail now and then.")

    with intercept_requests(answer_operation("PutItem", lambda _: FAILED)):
        answer = response_message(query_experiences.handler(event({"keywords": "flaky DNS pod"}), None))
    assert answer["error"]["code"] == "DATABASE_ERROR"


def test_full_disk_is_searched_without_counting(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    submit_experience("Flaky DNS in a container", "Names fail now and then.")
    monkeypatch.setattr("infra.local.free_space.is_full", lambda _: True)
    with intercept_requests(answer_operation("PutItem", lambda _: FAILED)):
        answer = response_message(query_experiences.handler(event({"keywords": "flaky DNS container"}), None))
    assert answer["data"]["experiences"]
