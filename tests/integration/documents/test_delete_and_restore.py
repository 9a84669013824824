"""Deleting and restoring documents, now and at a future time, on the real store."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from shared.rpc import timestamps
from shared.rpc.errors import Conflict, InvalidParams, NotFound
from tests.helpers.document_agent import DocumentAgent, assert_consistent_tree, expect_error

if TYPE_CHECKING:
    from collections.abc import Callable


def in_future(**amount: float) -> str:
    return timestamps.to_iso(timestamps.now() + timedelta(**amount) // timedelta(microseconds=1))


def test_deleted_document_is_hidden_but_stored(agent: DocumentAgent) -> None:
    agent.create("doc-1", body="kept")
    answer = agent("delete_document", document_id="doc-1")
    assert (answer["deleted"], answer["revision"]) == (True, 2)
    document = {"document_id": "doc-1"}
    unknown = expect_error(NotFound, "NOT_FOUND", agent.get, "doc-2").record()
    for method, params in (
        ("get_document", {}),
        ("get_document", {"revision": 1}),
        ("update_document", {"patch": {"metadata": {}}}),
        ("move_document", {"new_parent_id": "root"}),
    ):
        error = expect_error(NotFound, "NOT_FOUND", agent, method, **document, **params).record()
        assert str(error).replace("doc-1", "doc-2") == str(unknown)
    assert agent.children() == []
    assert agent("delete_document", **document)["revision"] == 2, "deleting again changes nothing"
    assert [each["action"] for each in agent.history("doc-1")] == ["create_document", "delete_document"]
    restored = agent("restore_document", **document)
    assert (restored["deleted"], restored["revision"]) == (False, 3)
    assert agent("restore_document", **document)["revision"] == 3, "restoring again changes nothing"
    assert agent.get("doc-1")["content"]["body"] == "kept"
    expect_error(NotFound, "NOT_FOUND", agent, "delete_document", document_id="nothing")
    expect_error(NotFound, "NOT_FOUND", agent, "restore_document", document_id="nothing")
    expect_error(NotFound, "NOT_FOUND", agent.history, "nothing")


def test_restore_keeps_the_sibling_position(agent: DocumentAgent) -> None:
    for name in "abc":
        agent.create(name)
    agent("delete_document", document_id="b")
    assert agent.children() == ["a", "c"]
    agent.create("d")
    agent("restore_document", document_id="b")
    assert agent.children() == ["a", "b", "c", "d"]


def test_document_with_children_cannot_be_deleted(agent: DocumentAgent) -> None:
    agent.create("p")
    agent.create("a", "p")
    expect_error(Conflict, "HAS_CHILDREN", agent, "delete_document", document_id="p")
    agent("delete_document", document_id="a")
    agent("delete_document", document_id="p")
    expect_error(Conflict, "PARENT_DELETED", agent, "restore_document", document_id="a")
    agent("restore_document", document_id="p")
    assert agent.children("p") == []
    agent("restore_document", document_id="a")
    assert agent.children("p") == ["a"]


def test_deletion_time_in_the_past_deletes_immediately(agent: DocumentAgent) -> None:
    agent.create("a")
    answer = agent("delete_document", document_id="a", delete_at="2025-09-16T04:00:00Z")
    assert (answer["deleted"], answer["delete_at"]) == (True, "2025-09-16T04:00:00Z")
    expect_error(NotFound, "NOT_FOUND", agent.get, "a")


def test_scheduled_deletion_takes_effect(agent: DocumentAgent, clock: Callable[..., None]) -> None:
    agent.create("p")
    agent.create("a", "p")
    moment = in_future(hours=1)
    answer = agent("delete_document", document_id="p", delete_at=moment, recursive=True)
    assert (answer["deleted"], answer["delete_at"]) == (False, moment)
    assert agent.get("p")["delete_at"] == agent.get("a")["delete_at"] == moment
    assert agent("update_document", document_id="a", patch={"metadata": {"title": "still"}})["revision"] == 3
    assert agent.create("late", "p")["delete_at"] == moment, "what comes below goes with it"
    assert agent.children("p") == ["a", "late"]
    clock(hours=1)
    for params in ("p", "a", "late"):
        expect_error(NotFound, "NOT_FOUND", agent.get, params)
        expect_error(NotFound, "NOT_FOUND", agent, "update_document", document_id=params, patch={"metadata": {}})
        expect_error(NotFound, "NOT_FOUND", agent.move, params, "root")
        expect_error(Conflict, "PARENT_DELETED", agent.create, "b", params)
    assert agent.children() == []
    expect_error(Conflict, "ALREADY_EXISTS", agent.create, "late")
    assert [each["action"] for each in agent.history("p")] == ["create_document", "delete_document"]
    assert_consistent_tree(agent.tenant)


def test_scheduled_deletion_can_be_cancelled_or_rescheduled(agent: DocumentAgent, clock: Callable[..., None]) -> None:
    agent.create("a")
    agent("delete_document", document_id="a", delete_at=in_future(hours=1))
    agent("delete_document", document_id="a", delete_at=in_future(hours=3))
    clock(hours=2)
    assert agent.get("a")["revision"] == 3
    assert agent("restore_document", document_id="a")["deleted"] is False
    clock(hours=2)
    assert "delete_at" not in agent.get("a")
    assert agent("delete_document", document_id="a")["deleted"] is True


def test_child_is_not_deleted_later_than_its_parent(agent: DocumentAgent, clock: Callable[..., None]) -> None:
    agent.create("p")
    agent.create("a", "p")
    agent.create("leaf")
    agent.create("branch")
    agent.create("twig", "branch")
    moment = in_future(hours=1)
    expect_error(Conflict, "HAS_CHILDREN", agent, "delete_document", document_id="p", delete_at=moment)
    agent("delete_document", document_id="a", delete_at=in_future(minutes=30))
    agent("delete_document", document_id="p", delete_at=moment)
    later = agent("delete_document", document_id="a", delete_at=in_future(hours=9))
    assert later["delete_at"] == moment, "at the latest with its parent"
    assert agent("restore_document", document_id="a")["delete_at"] == moment
    assert agent.move("leaf", "p")["delete_at"] == moment
    expect_error(Conflict, "PARENT_DELETED", agent.move, "branch", "p")
    assert "delete_at" not in agent.get("branch")
    agent.move("leaf", "root")
    assert agent.get("leaf")["delete_at"] == moment, "moving it away does not call its deletion off"
    assert_consistent_tree(agent.tenant)
    clock(hours=1)
    assert agent.children() == ["branch"]


def test_deleted_children_are_listed(agent: DocumentAgent) -> None:
    """Deleted documents are found without knowing their ids, below a deleted parent too."""
    agent.create("top")
    for name in ("a", "b", "c"):
        agent.create(name, "top")
    agent("delete_document", document_id="b")
    assert agent.children("top") == ["a", "c"]
    assert agent.children("top", deleted=True) == ["b"]
    assert agent.children("root", deleted=True) == []
    agent("delete_document", document_id="top", recursive=True)
    assert agent.children("root", deleted=True) == ["top"]
    assert agent.children("top", deleted=True) == ["a", "b", "c"]
    assert agent.children("top", limit=1, deleted=True) == ["a", "b", "c"]
    assert agent("list_children", parent_id="top", deleted=True)["children"][0]["delete_at"]
    agent("restore_document", document_id="top", recursive=True)
    assert agent.children("top", deleted=True) == ["b"]
    assert agent.children("root", deleted=True) == []


def test_deleted_documents_of_the_whole_tree_are_listed(agent: DocumentAgent, clock: Callable[..., None]) -> None:
    """The bin has every deleted document that can be restored, last deleted first, over pages."""

    def listed(limit: int = 1000) -> list[str]:
        return [each["document_id"] for each in agent.pages("list_deleted", "documents", limit)]

    agent.create("top", metadata={"title": "Sổ tay"})
    for name in ("a", "b", "c"):
        agent.create(name, "top")
    agent.create("twig", "a")
    assert listed() == []
    for name in ("twig", "c", "b"):
        clock(seconds=1)
        agent("delete_document", document_id=name)
    assert listed() == ["b", "c", "twig"]
    assert listed(limit=1) == ["b", "c", "twig"]
    described = agent("list_deleted", limit=1)["documents"][0]
    assert (described["parent_id"], described["parent_title"]) == ("top", "Sổ tay")
    assert described["delete_at"]
    assert "content" not in described
    clock(seconds=1)
    agent("delete_document", document_id="top", recursive=True)
    assert listed() == ["top"], "what is below a deleted document returns with it"
    agent("restore_document", document_id="top")
    assert listed() == ["a", "b", "c"], "they were not restored with it, and can be now"
    agent("restore_document", document_id="a")
    agent("delete_document", document_id="a", delete_at=in_future(hours=2))
    agent("delete_document", document_id="a", delete_at=in_future(hours=1))
    assert "a" not in listed(), "its deletion is still to come"
    assert_consistent_tree(agent.tenant)
    clock(hours=1)
    assert listed()[0] == "a"
    agent("restore_document", document_id="a")
    assert listed() == ["b", "c", "twig"]
    assert_consistent_tree(agent.tenant)
    for cursor in ("nonsense", "WyJhIl0x", "Wy0xXQ"):
        with pytest.raises(InvalidParams):
            agent("list_deleted", cursor=cursor)


@pytest.mark.parametrize("days", [2, -2])
def test_document_that_was_deleted_by_a_wrong_clock_stays_deleted(
    agent: DocumentAgent, clock: Callable[..., None], days: int
) -> None:
    """Otherwise it came back when the clock is set right, and its parent could not be deleted."""
    agent.create("top")
    agent.create("a", "top")
    agent.create("below", "a")
    agent.create("sibling", "top")
    clock(days=days)
    agent("delete_document", document_id="a", recursive=True)
    clock(days=-days)
    for each in ("a", "below"):
        expect_error(NotFound, "NOT_FOUND", agent.get, each)
    expect_error(NotFound, "NOT_FOUND", agent, "update_document", document_id="a", patch={"metadata": {}})
    expect_error(NotFound, "NOT_FOUND", agent.move, "below", "top")
    expect_error(Conflict, "PARENT_DELETED", agent.create, "new", "a")
    assert agent.children("top") == ["sibling"]
    assert agent.children("top", deleted=True) == ["a"]
    assert [each["document_id"] for each in agent("list_deleted")["documents"]] == ["a"]
    assert agent.move("sibling", "top", ordering=0)
    agent("delete_document", document_id="sibling")
    agent("delete_document", document_id="top")
    agent("restore_document", document_id="top")
    agent("restore_document", document_id="a")
    expect_error(NotFound, "NOT_FOUND", agent.get, "below")
    agent("delete_document", document_id="a")
    agent("restore_document", document_id="a")
    agent("restore_document", document_id="below")
    assert agent.children("a") == ["below"]
    clock(days=3)
    assert agent.children("a") == ["below"]
    assert_consistent_tree(agent.tenant)


def test_scheduled_deletion_is_not_listed_as_deleted(agent: DocumentAgent, clock: Callable[..., None]) -> None:
    agent.create("a")
    agent.create("b")
    agent("delete_document", document_id="a", delete_at=in_future(hours=1))
    agent("delete_document", document_id="b")
    assert [each["document_id"] for each in agent("list_deleted")["documents"]] == ["b"]
    clock(hours=2)
    assert [each["document_id"] for each in agent("list_deleted")["documents"]] == ["a", "b"]
