"""What a query finds, in which order, and what it does not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recall_kit import finding, table
from shared.experiences import experiences as stored_experiences
from shared.experiences.counting import Counting
from shared.experiences.models import now
from shared.knowledge import matching
from shared.rpc.caller import LOCAL
from tests.experiences import asked, done, final_score, is_in_order, paged, submitted
from tests.helpers.size import sized
from tests.helpers.wait import until
from tests.integration.experiences.noting import count_all, unavailable

if TYPE_CHECKING:
    from collections.abc import Callable


WORDS = ("timeout", "deadlock", "cache", "segfault", "CORS", "encoding", "leak", "race", "certificate", "proxy")


def test_the_next_query_finds_what_was_submitted(store: str) -> None:
    id_ = submitted("Kafka consumer lags behind", "The lag grows without end.", "Add partitions and consumers.")
    found = done("query_experiences", keywords="kafka consumer lag")
    assert [each["id"] for each in found["experiences"]] == [id_]
    assert (found["total"], found["limit"], found["offset"]) == (1, 10, 0)
    assert set(found["experiences"][0]) == {
        "id", "title", "problem_description", "solution", "keywords", "query_count", "created_at", "relevance_score",
    }  # fmt: skip
    assert 0 < found["experiences"][0]["relevance_score"] <= 1


@pytest.mark.stress
def test_an_order_is_what_the_formula_says_and_pages_join(
    store: str, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    """Experiences are ranked as the documented formula says, and pages join to the whole."""
    examples = sized(5, full=50)
    ids: list[str] = []
    began = datetime.now(UTC)
    for number in range(40):
        created = began - timedelta(days=number * 37 % 700, seconds=number)
        said_at = created.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        monkeypatch.setattr(stored_experiences, "now", lambda said_at=said_at: said_at)
        word, other = WORDS[number % 10], WORDS[number * 3 % 7]
        ids.append(submitted(f"The {word} of a gateway and its {other}", f"Seen {word} number {number // 10}."))

    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(
        st.lists(st.tuples(st.integers(0, 39), st.sampled_from([1, 1, 5, 50])), max_size=12),
        st.sampled_from([*WORDS, "gateway", "why does my gateway leak", "网关超时"]),
        st.integers(1, 50),
    )
    def holds(served: list[tuple[int, int]], keywords: str, limit: int) -> None:
        for number, times in served:
            for _ in range(times):
                Counting(table()).note([ids[number]])
        count_all(store)
        asked_at = datetime.now(UTC)
        whole = done("query_experiences", keywords=keywords, limit=50)
        rest = done("query_experiences", keywords=keywords, limit=50, offset=50)
        everything = whole["experiences"] + rest["experiences"]
        assert whole["total"] == rest["total"] == len(everything)
        assert is_in_order(everything, asked_at), [(final_score(each, asked_at), each) for each in everything]
        assert [each["id"] for each in paged(keywords, limit)] == [each["id"] for each in everything]

    holds()
    record_property("load", f"{examples} random queries over {len(ids)} experiences")
    record_property("outcome", "0 out of order, 0 missing from pages")


def test_all_matches_are_told_and_paged_however_many(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a page holds, and than a search looks at first."""
    monkeypatch.setattr(matching, "_FIRST", 32)
    ids = {submitted(f"Websocket closes, case {number}", "It closes.") for number in range(60)}
    first = done("query_experiences", keywords="websocket closes", limit=50)
    assert first["total"] == 60
    assert {each["id"] for each in paged("websocket closes", 50)} == ids
    assert done("query_experiences", keywords="websocket closes", offset=60)["experiences"] == []


def test_what_does_not_match_is_not_returned(store: str) -> None:
    submitted("React state is stale in a closure", "The handler sees an old value.", "Use the functional update form.")
    found = done("query_experiences", keywords="how to bake sourdough bread")
    assert (found["experiences"], found["total"]) == ([], 0)


def test_who_is_deleted_is_shown_to_nobody_until_restored(store: str) -> None:
    id_, other = (
        submitted("Nginx answers 502", "Upstream closed."),
        submitted("Nginx answers 502 at night", "Upstream."),
    )
    assert done("delete_experience", LOCAL, id=id_) == {"id": id_, "status": "deleted"}
    assert done("delete_experience", LOCAL, id=id_) == {"id": id_, "status": "deleted"}
    found = done("query_experiences", keywords="nginx 502")
    assert ([each["id"] for each in found["experiences"]], found["total"]) == ([other], 1)
    assert asked("get_experience", id=id_)["error"]["code"] == "NOT_FOUND"
    assert asked("update_experience", LOCAL, id=id_, title="x")["error"]["code"] == "NOT_FOUND"
    assert done("restore_experience", LOCAL, id=id_) == {"id": id_, "status": "published"}
    assert done("query_experiences", keywords="nginx 502")["total"] == 2


def test_the_deleted_are_not_shown_though_the_index_does_not_know(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [submitted(f"Postgres vacuum is slow, {number}", "It takes hours.") for number in range(6)]
    order = [each["id"] for each in done("query_experiences", keywords="postgres vacuum slow")["experiences"]]
    with monkeypatch.context() as away:
        away.setattr(finding, "_matcher", unavailable)
        done("delete_experience", LOCAL, id=order[1])
    first = done("query_experiences", keywords="postgres vacuum slow", limit=2)
    assert ([each["id"] for each in first["experiences"]], first["total"]) == ([order[0], order[2]], 5)
    assert set(order) == set(ids)


def test_an_update_is_found_as_it_is_now(store: str) -> None:
    id_ = submitted("Terraform state is locked", "Somebody holds it.", root_cause="A crash", context="v1")
    (before,) = done("query_experiences", keywords="terraform state is locked")["experiences"]
    assert before["id"] == id_
    until(lambda: now() > before["created_at"])
    changed = done("update_experience", LOCAL, id=id_, title="Helm release is stuck", root_cause=None, keywords=[])
    assert changed["title"] == "Helm release is stuck"
    assert "root_cause" not in changed
    assert (changed["context"], changed["created_at"] < changed["updated_at"]) == ("v1", True)
    assert "helm" in changed["keywords"]
    assert [each["id"] for each in done("query_experiences", keywords="helm release stuck")["experiences"]] == [id_]
    by_old_words = done("query_experiences", keywords="terraform state is locked")["experiences"]
    assert all(each["relevance_score"] < before["relevance_score"] / 2 for each in by_old_words)
