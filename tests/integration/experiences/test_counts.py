"""What a query returns is counted, and what it could not count it does not return."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from recall_kit import query_experiences, table
from recall_kit.finding import recount
from shared.experiences.counting import Counting
from shared.experiences.models import now
from tests.experiences import asked, done, paged, submitted
from tests.faults import FAILED
from tests.helpers.wait import until
from tests.integration.experiences.noting import count_all, counts, noted, records
from tests.mcp import event, said
from tests.wire import answering, on_the_wire
from workers import count_queries

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def counted(store: str) -> Iterator[None]:
    """What other tests have asked is counted before this one begins."""
    count_all(store)
    yield
    count_all(store)


@pytest.mark.usefixtures("counted")
def test_each_returned_record_is_counted_once_a_query(store: str) -> None:
    ids = [submitted(f"Grafana panel is empty {number}", "No data.") for number in range(60)]
    before = {id_: done("get_experience", id=id_)["updated_at"] for id_ in ids}
    until(lambda: now() > max(before.values()))
    returned = [
        each["id"]
        for limit, offset in ((50, 0), (50, 0), (10, 20))
        for each in done("query_experiences", keywords="grafana panel empty", limit=limit, offset=offset)["experiences"]
    ]
    assert counts(*ids) == [0] * 60
    keys = noted(store)
    assert len(keys) == 3
    event = records(*keys, *keys)
    for _ in range(2):  # delivered again, though all went well
        assert count_queries.handler(event, None) == {"batchItemFailures": []}
    assert noted(store) == []
    assert counts(*ids) == [returned.count(id_) for id_ in ids]
    for id_ in set(returned):
        assert done("get_experience", id=id_)["updated_at"] > before[id_]


@pytest.mark.usefixtures("counted")
def test_what_does_not_fit_through_a_door_is_refused_and_not_counted(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [submitted(f"Quoting is doubled {number}", "x" * 1000) for number in range(6)]
    monkeypatch.setattr("recall_kit.query_experiences.MAX_PAGE_BYTES", 5_000)
    answer = asked("query_experiences", keywords="quoting is doubled", limit=50)
    assert (answer["error"]["kind"], "limit" in answer["error"]["guidance"]) == ("TooLarge", True)
    assert noted(store) == []
    assert len(paged("quoting is doubled", 3)) == len(ids)


def test_an_index_that_was_behind_ranks_by_counts_as_they_are(store: str) -> None:
    first, second = (submitted(f"Jenkins agent offline {number}", "It is offline.") for number in "ab")
    for _ in range(40):
        Counting(table()).note([first])
    count_all(store)
    recount([first, second, "of an experience that is not there"])
    found = done("query_experiences", keywords="jenkins agent offline")["experiences"]
    assert [(each["id"], each["query_count"]) for each in found] == [(first, 40), (second, 0)]


def test_a_count_that_cannot_be_noted_is_a_database_error(store: str) -> None:
    """No answer is given that is not counted."""
    submitted("Flaky DNS in a pod", "Names fail now and then.")

    with on_the_wire(answering("PutItem", lambda _: FAILED)):
        answer = said(query_experiences.handler(event({"keywords": "flaky DNS pod"}), None))
    assert answer["error"]["code"] == "DATABASE_ERROR"
