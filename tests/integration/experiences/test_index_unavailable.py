"""Nothing is lost while the index is down, and the stream catches up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.experiences import index as experience_index
from shared.experiences.index import refresh_counts
from tests.helpers.experience_client import call_method, call_successfully, submit_experience
from tests.helpers.query_counts import stream_event, unavailable_index
from tests.helpers.settings import changed_settings
from workers import index_experiences

if TYPE_CHECKING:
    import pytest


MATCHER = experience_index._search_index


def test_submit_succeeds_during_index_outage_and_stream_catches_up(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as away:
        away.setattr(experience_index, "_search_index", unavailable_index)
        id_ = submit_experience("Elasticsearch cluster is red", "Shards are unassigned.")
        event = stream_event({"pk": {"S": f"content#{id_[:2]}"}, "sk": {"S": id_}})
        assert index_experiences.handler(event, None)["batchItemFailures"]
        assert call_method("query_experiences", keywords="elasticsearch")["error"]["kind"] == "Unavailable"
    assert call_successfully("query_experiences", keywords="elasticsearch cluster red")["total"] == 0
    for _ in range(2):
        assert index_experiences.handler(event, None) == {"batchItemFailures": []}
    assert [
        each["id"] for each in call_successfully("query_experiences", keywords="elasticsearch red")["experiences"]
    ] == [id_]


def test_stream_completes_a_submission_that_crashed_before_comparison(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, solution = "Assertion failed in the allocator after an upgrade of glibc.", "Build against the new glibc."
    old = submit_experience("Allocator assertion after glibc upgrade", problem, solution)
    with monkeypatch.context() as away:
        away.setattr(experience_index, "_note_duplicates", lambda *_: unavailable_index())
        new = submit_experience("Allocator assertion after a glibc upgrade", problem, solution)
    assert "similar_to" not in call_successfully("get_experience", id=new)
    refresh_counts([new])  # counts meanwhile do not affect indexing
    event = stream_event({"pk": {"S": f"content#{new[:2]}"}, "sk": {"S": new}})
    assert index_experiences.handler(event, None) == {"batchItemFailures": []}
    assert call_successfully("get_experience", id=new)["similar_to"] == old


def test_without_index_queries_are_empty_and_data_is_kept(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = changed_settings(qdrant_url="", qdrant_folder="")
    monkeypatch.setattr(experience_index, "_search_index", MATCHER)
    monkeypatch.setattr("shared.experiences.index.config", lambda: nowhere)
    assert (
        call_successfully("get_experience", id=submit_experience("Mutex is poisoned"))["title"] == "Mutex is poisoned"
    )
    assert call_method("query_experiences", keywords="mutex")["error"]["kind"] == "Unavailable"
