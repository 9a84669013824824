"""The tree is at most 64 levels deep. Heights and hints about ancestors never lead to a wrong decision."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from shared.aws.dynamodb import Table
from shared.documents.tree import Tree
from shared.documents.tree import _parent_hints as hints
from shared.platform.config import config
from shared.rpc.errors import Conflict
from tests.helpers.document_agent import assert_consistent_tree, create_chain, expect_error
from tests.helpers.dynamodb_requests import intercept_requests

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from tests.helpers.document_agent import DocumentAgent


def test_tree_depth_limit_is_64(agent: DocumentAgent) -> None:
    names = create_chain(agent, 64)
    expect_error(Conflict, "TOO_DEEP", agent.create, "too-deep", names[-1])
    agent.create("deepest", names[-2])
    pair = create_chain(agent, 2, "pair")
    expect_error(Conflict, "TOO_DEEP", agent.move, pair[0], names[-2])
    expect_error(Conflict, "TOO_DEEP", agent.move, pair[1], names[-1])
    agent.move(pair[0], names[-3])
    assert_consistent_tree(agent.tenant)


@contextmanager
def recorded_reads() -> Iterator[list[str]]:
    """Record the single-item and batch reads of the store."""
    reads: list[str] = []
    with intercept_requests(lambda operation, _: reads.append(operation) if "GetItem" in operation else None):
        yield reads


def test_known_ancestors_are_read_in_one_batch(agent: DocumentAgent) -> None:
    """Ancestors that the process has seen take one read."""
    names = create_chain(agent, 20)
    agent.create("moved")
    agent.move("moved", names[-1])
    with recorded_reads() as reads:
        agent.move("moved", names[-1])
    assert reads == ["BatchGetItem", "BatchGetItem"], "the document, and all its ancestors"


def test_outdated_ancestor_hints_change_no_decision(agent: DocumentAgent) -> None:
    """Another process may have moved the ancestors that this one has seen."""
    names = create_chain(agent, 6)
    agent.create("other")
    agent.create("moved")
    agent.move("moved", names[-1])
    agent.move(names[3], "other")
    hints.put((agent.tenant, names[3]), names[2])
    assert agent.move("moved", names[-1])["parent_id"] == names[-1]
    hints.put((agent.tenant, names[3]), names[2])
    expect_error(Conflict, "CYCLE", agent.move, "other", names[-1])
    hints.put((agent.tenant, names[0]), names[-1])
    hints.put((agent.tenant, names[2]), "never-created")
    assert agent.move("moved", names[2])["parent_id"] == names[2]
    assert_consistent_tree(agent.tenant)


def test_moved_subtree_is_not_counted(agent: DocumentAgent) -> None:
    """A document whose deep subtree has left may be moved deep."""
    tall = create_chain(agent, 30, "tall")
    deep = create_chain(agent, 50, "deep")
    expect_error(Conflict, "TOO_DEEP", agent.move, tall[0], deep[-1])
    agent.move(tall[10], "root")
    agent.move(tall[0], deep[-1])
    positions = assert_consistent_tree(agent.tenant)
    assert positions[tall[0]].height == 9
    agent.create("more", tall[3])
    expect_error(Conflict, "TOO_DEEP", agent.move, tall[10], tall[9])


def test_interrupted_height_measurement_is_repeated(agent: DocumentAgent) -> None:
    """While a height is being measured, an added level is counted, and a move measures again."""
    tall = create_chain(agent, 10, "tall")
    deep = create_chain(agent, 56, "deep")
    tree = Tree(Table(config().documents_table), agent.tenant)
    position = tree.find(tall[0])
    assert position
    assert tree.measure_height(position, 9).height == 9
    agent.create("wider", tall[1])
    expect_error(Conflict, "TOO_DEEP", agent.move, tall[0], deep[-1])
    document = tree.find(tall[0])
    assert document
    assert (document.height, document.measuring) == (9, None)
    tree.measure_height(document, 9)
    agent.move(tall[0], deep[-3])
    assert_consistent_tree(agent.tenant)


def test_growth_during_measurement_cannot_exceed_the_depth_limit(
    agent: DocumentAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    tall = create_chain(agent, 20, "tall")
    agent.move(tall[5], "root")
    deep = create_chain(agent, 58, "deep")
    real = Tree.measure_height
    grown: list[str] = []

    def measured_then_grown(tree: Tree, position: Any, room: int) -> Any:
        answer = real(tree, position, room)
        if not grown:
            grown.append(agent.create("grown", tall[4])["document_id"])
            grown.append(agent.create("more", "grown")["document_id"])
        return answer

    monkeypatch.setattr(Tree, "measure_height", measured_then_grown)
    expect_error(Conflict, "TOO_DEEP", agent.move, tall[0], deep[-1])
    monkeypatch.undo()
    assert_consistent_tree(agent.tenant)


def test_overestimated_height_is_measured_again(agent: DocumentAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    """A move is not refused because of levels that have left, if new ones come meanwhile."""
    deep = create_chain(agent, 30, "deep")
    for once_high, height in (("moved", 50), ("added", 40)):
        agent.create(once_high)
        create_chain(agent, height, f"{once_high}-")
        agent.move(f"{once_high}-1", once_high)
        agent.move(f"{once_high}-1", "root")
    real = Tree.children
    added: list[str] = []

    def added_meanwhile(tree: Tree, document_id: str) -> Any:
        if document_id == "moved" and not added:
            added.append("added")
            agent.move("added", "moved")
        return real(tree, document_id)

    monkeypatch.setattr(Tree, "children", added_meanwhile)
    agent.move("moved", deep[-1])
    assert added
    monkeypatch.undo()
    assert_consistent_tree(agent.tenant)
