"""The results of queries, their order, and records that are not found."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.experiences import index as experience_index
from shared.experiences import repository as stored_experiences
from shared.experiences.query_counts import QueryCounts
from shared.experiences.repository import experiences_table
from shared.platform.clock import now
from shared.rpc.caller import LOCAL
from shared.search import exhaustive_search
from tests.helpers.experience_client import (
    call_method,
    call_successfully,
    final_score,
    is_ranked,
    query_all_pages,
    submit_experience,
)
from tests.helpers.query_counts import count_all, unavailable_index
from tests.helpers.size import sized
from tests.helpers.wait import until

if TYPE_CHECKING:
    from collections.abc import Callable


WORDS = ("timeout", "deadlock", "cache", "segfault", "CORS", "encoding", "leak", "race", "certificate", "proxy")


def test_next_query_finds_the_submission(store: str) -> None:
    id_ = submit_experience("Kafka consumer lags behind", "The lag grows without end.", "Add partitions and consumers.")
    data = call_successfully("query_experiences", keywords="kafka consumer lag")
    assert [each["id"] for each in data["experiences"]] == [id_]
    assert (data["total"], data["limit"], data["offset"]) == (1, 10, 0)
    assert set(data["experiences"][0]) == {
        "id", "title", "problem_description", "solution", "keywords", "query_count", "created_at", "relevance_score",
    }  # fmt: skip
    assert 0 < data["experiences"][0]["relevance_score"] <= 1


@pytest.mark.stress
def test_ranking_follows_the_formula_across_pages(
    store: str, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    """Experiences are ranked by the documented formula, and the pages join to the whole list."""
    examples = sized(5, full=50)
    ids: list[str] = []
    began = datetime.now(UTC)
    for number in range(40):
        created = began - timedelta(days=number * 37 % 700, seconds=number)
        said_at = created.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        monkeypatch.setattr(stored_experiences, "now", lambda said_at=said_at: said_at)
        word, other = WORDS[number % 10], WORDS[number * 3 % 7]
        ids.append(submit_experience(f"The {word} of a gateway and its {other}", f"Seen {word} number {number // 10}."))

    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(
        st.lists(st.tuples(st.integers(0, 39), st.sampled_from([1, 1, 5, 50])), max_size=12),
        st.sampled_from([*WORDS, "gateway", "why does my gateway leak", "网关超时"]),
        st.integers(1, 50),
    )
    def holds(served: list[tuple[int, int]], keywords: str, limit: int) -> None:
        for number, times in served:
            for _ in range(times):
                QueryCounts(experiences_table()).record_result([ids[number]])
        count_all(store)
        asked_at = datetime.now(UTC)
        whole = call_successfully("query_experiences", keywords=keywords, limit=50)
        rest = call_successfully("query_experiences", keywords=keywords, limit=50, offset=50)
        everything = whole["experiences"] + rest["experiences"]
        assert whole["total"] == rest["total"] == len(everything)
        assert is_ranked(everything, asked_at), [(final_score(each, asked_at), each) for each in everything]
        assert [each["id"] for each in query_all_pages(keywords, limit)] == [each["id"] for each in everything]

    holds()
    record_property("load", f"{examples} random queries over {len(ids)} experiences")
    record_property("outcome", "0 out of order, 0 missing from pages")


def test_all_matches_are_paged(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """More results than a page holds, and more than the first search step examines."""
    monkeypatch.setattr(exhaustive_search, "_FIRST_PAGE", 32)
    ids = {submit_experience(f"Websocket closes, case {number}", "It closes.") for number in range(60)}
    first = call_successfully("query_experiences", keywords="websocket closes", limit=50)
    assert first["total"] == 60
    assert {each["id"] for each in query_all_pages("websocket closes", 50)} == ids
    assert call_successfully("query_experiences", keywords="websocket closes", offset=60)["experiences"] == []


def test_non_matching_experiences_are_not_returned(store: str) -> None:
    submit_experience(
        "React state is stale in a closure", "The handler sees an old value.", "Use the functional update form."
    )
    data = call_successfully("query_experiences", keywords="how to bake sourdough bread")
    assert (data["experiences"], data["total"]) == ([], 0)


@pytest.mark.parametrize("keywords", ["x" * 2048, "%", "﷽", "🙂", "the", "và", "的"])
def test_text_without_a_word_matches_nothing(store: str, keywords: str) -> None:
    submit_experience("بسم: the 🙂 is shown as %", "xxxxxx appears, 100 % of the time.", "Escape the % and the x.")
    data = call_successfully("query_experiences", keywords=keywords)
    assert (data["experiences"], data["total"]) == ([], 0)


def test_deleted_experience_is_hidden_until_restored(store: str) -> None:
    id_, other = (
        submit_experience("Nginx answers 502", "Upstream closed."),
        submit_experience("Nginx answers 502 at night", "Upstream."),
    )
    assert call_successfully("delete_experience", LOCAL, id=id_) == {"id": id_, "status": "deleted"}
    assert call_successfully("delete_experience", LOCAL, id=id_) == {"id": id_, "status": "deleted"}
    data = call_successfully("query_experiences", keywords="nginx 502")
    assert ([each["id"] for each in data["experiences"]], data["total"]) == ([other], 1)
    assert call_method("get_experience", id=id_)["error"]["code"] == "NOT_FOUND"
    assert call_method("update_experience", LOCAL, id=id_, title="x")["error"]["code"] == "NOT_FOUND"
    assert call_successfully("restore_experience", LOCAL, id=id_) == {"id": id_, "status": "published"}
    assert call_successfully("query_experiences", keywords="nginx 502")["total"] == 2


def test_deleted_experience_is_hidden_while_the_index_lags(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [submit_experience(f"Postgres vacuum is slow, {number}", "It takes hours.") for number in range(6)]
    order = [
        each["id"] for each in call_successfully("query_experiences", keywords="postgres vacuum slow")["experiences"]
    ]
    with monkeypatch.context() as away:
        away.setattr(experience_index, "_search_index", unavailable_index)
        call_successfully("delete_experience", LOCAL, id=order[1])
    first = call_successfully("query_experiences", keywords="postgres vacuum slow", limit=2)
    assert ([each["id"] for each in first["experiences"]], first["total"]) == ([order[0], order[2]], 5)
    assert set(order) == set(ids)


def test_query_returns_the_updated_experience(store: str) -> None:
    id_ = submit_experience("Terraform state is locked", "Another run holds it.", root_cause="A crash", context="v1")
    (before,) = call_successfully("query_experiences", keywords="terraform state is locked")["experiences"]
    assert before["id"] == id_
    until(lambda: now() > before["created_at"])
    changed = call_successfully(
        "update_experience", LOCAL, id=id_, title="Helm release is stuck", root_cause=None, keywords=[]
    )
    assert changed["title"] == "Helm release is stuck"
    assert "root_cause" not in changed
    assert (changed["context"], changed["created_at"] < changed["updated_at"]) == ("v1", True)
    assert "helm" in changed["keywords"]
    assert [
        each["id"] for each in call_successfully("query_experiences", keywords="helm release stuck")["experiences"]
    ] == [id_]
    by_old_words = call_successfully("query_experiences", keywords="terraform state is locked")["experiences"]
    assert all(each["relevance_score"] < before["relevance_score"] / 2 for each in by_old_words)
