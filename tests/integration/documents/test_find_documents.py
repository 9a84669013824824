"""find_documents on the real store: each title that is written is found by the next call, exactly."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.documents import name_search
from shared.rpc.errors import InvalidParams
from tests.helpers.document_agent import DocumentAgent, assert_consistent_tree, expect_error
from tests.helpers.interference import another_caller

TITLES = {
    "doc-pf-032": "Lộ trình Onboarding (v2)",
    "guide": "Garden guide",
    "guide-soil": "Soil of the garden, and gardening",
    "zh": "部署指南：第一章",
    "de": "Straßen & ÉCOLE",
    "th": "คู่มือสวน",
    "untitled": None,
}


@pytest.fixture
def titles(agent: DocumentAgent) -> None:
    """Create documents with titles, one below the other."""
    parent = "root"
    for document_id, title in TITLES.items():
        metadata = {"title": title, "tags": ["x", "y"], "n": 1} if title else {}
        agent.create(document_id, parent, metadata=metadata)
        parent = document_id


def found(agent: DocumentAgent, query: str, limit: int = 1000, **params: Any) -> list[str]:
    pages = agent.pages("find_documents", "documents", limit, query=query, **params)
    return [each["document_id"] for each in pages]


@pytest.mark.usefixtures("titles")
@pytest.mark.parametrize(
    ("query", "documents"),
    [
        ("garden", ["guide", "guide-soil"]),
        ("GARD", ["guide", "guide-soil"]),
        ("gardening", ["guide-soil"]),
        ("soil gard", ["guide-soil"]),
        ("gard guide", ["guide", "guide-soil"]),
        ("arden", []),
        ("lo trinh", ["doc-pf-032"]),
        ("lộ", ["doc-pf-032"]),
        ("lo\u0302\u0323 TRÌNH", ["doc-pf-032"]),
        ("v2", ["doc-pf-032"]),
        ("doc-pf-0", ["doc-pf-032"]),
        ("032", ["doc-pf-032"]),
        ("guide-s", ["guide-soil"]),
        ("指南", ["zh"]),
        ("部署", ["zh"]),
        ("部指", []),
        ("第一章", ["zh"]),
        ("ecole strasse", ["de"]),
        ("สวน", ["th"]),
        ("unt", ["untitled"]),
        ("x", []),
    ],
)
def test_words_and_their_beginnings(agent: DocumentAgent, query: str, documents: list[str]) -> None:
    """Titles and ids are found in the whole tree, without regard to case, accents and the order of words."""
    assert sorted(found(agent, query)) == sorted(documents)
    assert_consistent_tree(agent.tenant)


@pytest.mark.usefixtures("titles")
def test_found_documents_are_as_in_lists(agent: DocumentAgent) -> None:
    (document,) = agent("find_documents", query="garden guide", limit=1)["documents"]
    assert document in agent("list_children", parent_id="doc-pf-032")["children"]


@pytest.mark.usefixtures("titles")
@pytest.mark.parametrize(
    ("metadata", "documents"),
    [
        ({"n": 1}, ["guide", "guide-soil"]),
        ({"n": 1.0, "tags": "x"}, ["guide", "guide-soil"]),
        ({"title": ["Garden guide", "another"]}, ["guide"]),
        ({"n": "1"}, []),
        ({"n": True}, []),
        ({"tags": ["z", "y"]}, ["guide", "guide-soil"]),
        ({"tags": "z"}, []),
        ({"missing": 1}, []),
    ],
)
def test_metadata(agent: DocumentAgent, metadata: dict[str, Any], documents: list[str]) -> None:
    """Values are exact; of a list, one is enough."""
    assert found(agent, "gard", metadata=metadata) == documents


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({}, "query"),
        ({"metadata": {"n": 1}}, "query"),
        ({"query": " "}, "query"),
        ({"query": "!? _"}, "query"),
        ({"query": "x" * 257}, "query"),
        ({"query": "x", "metadata": {"n": {}}}, "metadata"),
        ({"query": "x", "metadata": {"n": []}}, "metadata"),
        ({"query": "x", "metadata": {"n": None}}, "metadata"),
        ({"query": "x", "metadata": {str(number): 1 for number in range(17)}}, "metadata"),
        ({"query": "x", "cursor": "x"}, "cursor"),
    ],
)
def test_invalid_queries(agent: DocumentAgent, params: dict[str, Any], field: str) -> None:
    error = expect_error(InvalidParams, "INVALID_PARAMS", agent, "find_documents", **params)
    assert error.details[0]["field"] == field


def test_each_write_of_a_title_is_found_by_the_next_call(agent: DocumentAgent) -> None:
    agent.create("a", metadata={"title": "Old name"})
    assert found(agent, "old") == ["a"]
    agent("update_document", document_id="a", patch={"metadata": {"title": "New name"}})
    assert (found(agent, "old"), found(agent, "new na"), found(agent, "name")) == ([], ["a"], ["a"])
    agent("edit_document", document_id="a", edits=[{"metadata": {"title": "Third name"}}])
    assert (found(agent, "new"), found(agent, "thi")) == ([], ["a"])
    agent("edit_document", document_id="a", edits=[{"restore_revision": 1}])
    assert (found(agent, "third"), found(agent, "old")) == ([], ["a"])
    agent("update_document", document_id="a", patch={"metadata": {}})
    assert (found(agent, "name"), found(agent, "a")) == ([], ["a"])
    assert_consistent_tree(agent.tenant)


def test_deleted_documents_are_not_found(agent: DocumentAgent) -> None:
    agent.create("a", metadata={"title": "Fern"})
    agent("delete_document", document_id="a")
    assert found(agent, "fern") == []
    agent("restore_document", document_id="a")
    assert found(agent, "fern") == ["a"]
    agent.create("shelf")
    agent.move("a", "shelf")
    assert found(agent, "fern") == ["a"]


def test_another_writer_in_between(agent: DocumentAgent) -> None:
    """A title that another writer has changed meanwhile leaves no words behind."""
    agent.create("a", metadata={"title": "First"})

    def rename(title: str) -> None:
        agent("update_document", document_id="a", patch={"metadata": {"title": title}})

    with another_caller(lambda: rename("Second"), before="TransactWriteItems"):
        rename("Third")
    assert (found(agent, "first"), found(agent, "second"), found(agent, "third")) == ([], [], ["a"])
    assert_consistent_tree(agent.tenant)


def test_title_of_very_many_words(agent: DocumentAgent) -> None:
    """Every word is found, at the deepest level too, where a transaction has the least room."""
    parent = "root"
    for level in range(63):
        agent.create(f"d{level}", parent)
        parent = f"d{level}"
    title = " ".join(f"w{number:03}" for number in range(300))
    agent.create("long", parent, metadata={"title": title})
    agent.create("other", metadata={"title": "w299 w300"})
    assert found(agent, "w000") == found(agent, "w001 w298") == ["long"]
    assert found(agent, "w299") == ["other", "long"]
    assert found(agent, "w", limit=1) == ["long", "other"]
    agent("update_document", document_id="long", patch={"metadata": {"title": title.replace("w", "v")}})
    assert (found(agent, "w299"), found(agent, "v299")) == (["other"], ["long"])
    assert_consistent_tree(agent.tenant)


def test_pages(agent: DocumentAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages join without a repetition, also those that end because a call has read enough."""
    monkeypatch.setattr(name_search, "_MOST_ITEMS", 7)
    monkeypatch.setattr(name_search, "_BATCH", 5)
    names = [f"n{number:02}" for number in range(24)]
    for number, name in enumerate(names):
        agent.create(name, metadata={"title": f"Report reports {number}", "even": number % 2 == 0})
    for limit in (1, 4, 100):
        assert sorted(found(agent, "report", limit)) == names
        assert found(agent, "rep 17", limit) == ["n17"]
        assert sorted(found(agent, "reports", limit, metadata={"even": True})) == names[::2]
    page = agent("find_documents", query="report", limit=4)
    for other in ({"query": "reports"}, {"query": "report", "metadata": {"even": True}}):
        expect_error(InvalidParams, "INVALID_PARAMS", agent, "find_documents", **other, cursor=page["next_cursor"])


WORDS = st.sampled_from(["Fern", "fern", "Farn", "moss", "mös", "苔藓", "藓", "a-b", "b_a", "FERNS", "é"])


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(WORDS, max_size=4).map(" ".join), min_size=1, max_size=6), st.lists(WORDS, min_size=1, max_size=2)
)
def test_results_equal_a_model(agent: DocumentAgent, written: list[str], asked: list[str]) -> None:
    """The documents found are those that a look at every title finds."""
    own = DocumentAgent(f"{agent.tenant}-{uuid4().hex[:8]}")
    for number, title in enumerate(written):
        own.create(f"id{number}", metadata={"title": title})
    plain = str.maketrans("éö-_", "eo  ")
    query = " ".join(asked)

    def has_all(title: str) -> bool:
        text = title.casefold().translate(plain)
        words = [
            *text.split(),
            *(word[start:] for word in text.split() for start in range(len(word)) if word > "\u3000"),
        ]
        return all(any(word.startswith(part) for word in words) for part in query.casefold().translate(plain).split())

    expected = [f"id{number}" for number, title in enumerate(written) if has_all(title)]
    assert sorted(found(own, query, limit=2)) == expected
