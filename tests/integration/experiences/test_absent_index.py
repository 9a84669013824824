"""While the index is away nothing is lost, and the stream catches up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recall_kit import finding
from recall_kit.finding import recount
from shared.config import config
from tests.experiences import asked, done, submitted
from tests.integration.experiences.noting import records, unavailable
from workers import index_experiences

if TYPE_CHECKING:
    import pytest


MATCHER = finding._matcher


def test_while_the_index_is_away_submitting_succeeds_and_the_stream_catches_up(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as away:
        away.setattr(finding, "_matcher", unavailable)
        id_ = submitted("Elasticsearch cluster is red", "Shards are unassigned.")
        event = records({"pk": {"S": f"content#{id_[:2]}"}, "sk": {"S": id_}})
        assert index_experiences.handler(event, None)["batchItemFailures"]
        assert asked("query_experiences", keywords="elasticsearch")["error"]["kind"] == "Unavailable"
    assert done("query_experiences", keywords="elasticsearch cluster red")["total"] == 0
    for _ in range(2):
        assert index_experiences.handler(event, None) == {"batchItemFailures": []}
    assert [each["id"] for each in done("query_experiences", keywords="elasticsearch red")["experiences"]] == [id_]


def test_who_ended_before_comparing_is_followed_by_the_stream(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, solution = "Assertion failed in the allocator after an upgrade of glibc.", "Build against the new glibc."
    old = submitted("Allocator assertion after glibc upgrade", problem, solution)
    with monkeypatch.context() as away:
        away.setattr(finding, "_compare", lambda *_: unavailable())
        new = submitted("Allocator assertion after a glibc upgrade", problem, solution)
    assert "similar_to" not in done("get_experience", id=new)
    recount([new])  # what it is counted for meanwhile says nothing of that
    event = records({"pk": {"S": f"content#{new[:2]}"}, "sk": {"S": new}})
    assert index_experiences.handler(event, None) == {"batchItemFailures": []}
    assert done("get_experience", id=new)["similar_to"] == old


def test_where_there_is_no_index_nothing_is_found_and_nothing_is_lost(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = replace(config(), qdrant_url="", qdrant_folder="")
    monkeypatch.setattr(finding, "_matcher", MATCHER)
    monkeypatch.setattr("recall_kit.finding.config", lambda: nowhere)
    assert done("get_experience", id=submitted("Mutex is poisoned"))["title"] == "Mutex is poisoned"
    assert asked("query_experiences", keywords="mutex")["error"]["kind"] == "Unavailable"
