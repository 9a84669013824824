"""Interference of two writers at the worst moment: the first has read and is about to write."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from shared.aws.dynamodb import ConditionFailed, Table, Write
from shared.documents.idempotency import WriteRequest
from shared.documents.models import WriteResult
from shared.documents.sibling_order import SiblingOrder, _Sibling
from shared.documents.tree import Tree, TreePosition
from shared.documents.unit_of_work import UnitOfWork
from shared.platform.config import config
from shared.rpc.caller import Caller
from shared.rpc.errors import KhoError, Unavailable
from tests.helpers.document_agent import DocumentAgent, assert_consistent_tree, create_chain
from tests.helpers.interference import another_caller
from tests.helpers.store_faults import failing_transactions_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def interrupted(call: Callable[[], Any], intruder: Callable[[], Any], *, at: int = 1) -> Any:
    """Return the result or the error code of `call`, with `intruder` run before transaction number `at`."""

    with another_caller(intruder, before="TransactWriteItems", at=at):
        try:
            return call()
        except KhoError as error:
            return error.code


@pytest.fixture
def families(agent: DocumentAgent) -> None:
    """Create two families of three generations. Each has stood below the other, so known heights forbid nothing."""
    for top in "ab":
        agent.create(top)
        agent.create(f"{top}1", top)
        agent.create(f"{top}2", f"{top}1")
    for above, below in (("a2", "b"), ("b2", "a")):
        agent.move(below, above)
        agent.move(below, "root")


def delete(agent: DocumentAgent, document_id: str, **params: Any) -> Any:
    return agent("delete_document", document_id=document_id, **params)


@pytest.mark.usefixtures("families")
@pytest.mark.parametrize(("above", "below"), [("b", "a"), ("b1", "a"), ("b2", "a"), ("b2", "a1")])
def test_interleaved_moves_cannot_form_a_cycle(agent: DocumentAgent, above: str, below: str) -> None:
    """Move each family below the end of the other's chain, so that the two moves share not even a parent."""
    assert interrupted(
        lambda: agent.move("a", above), lambda: agent.move("b", f"{below}2" if below == "a" else below)
    ) == ("CYCLE")
    assert_consistent_tree(agent.tenant)


@pytest.mark.usefixtures("families")
@pytest.mark.parametrize("gone", ["b", "b1", "b2"])
def test_create_under_a_just_deleted_parent(agent: DocumentAgent, gone: str) -> None:
    """Delete any ancestor: nothing alive remains below it."""
    for call in (lambda: agent.create("new", "b2"), lambda: agent.move("a", "b2")):
        answer = interrupted(call, lambda: delete(agent, gone, recursive=True))
        assert answer == "PARENT_DELETED"
        assert_consistent_tree(agent.tenant)
        agent("restore_document", document_id=gone, recursive=True)


@pytest.mark.usefixtures("families")
def test_create_under_a_parent_being_deleted(agent: DocumentAgent) -> None:
    """Only the top is marked so far, but nothing can move below it at any depth."""

    def delete_the_top() -> None:
        with failing_transactions_from(2), pytest.raises(Unavailable):
            delete(agent, "b", recursive=True)

    for call in (partial(agent.create, "new", "b2"), partial(agent.move, "a", "b2")):
        assert interrupted(call, delete_the_top) == "PARENT_DELETED"
        agent("restore_document", document_id="b")
    assert_consistent_tree(agent.tenant)


def test_create_under_a_moving_parent(agent: DocumentAgent) -> None:
    """The new ancestors then know the height."""
    for name, parent in (("old", "root"), ("moved", "old"), ("end", "moved"), ("new", "root"), ("x", "root")):
        agent.create(name, parent)
    moving_away = partial(agent.move, "moved", "new")
    assert interrupted(partial(agent.create, "y", "end"), moving_away)["revision"] == 1
    assert_consistent_tree(agent.tenant)
    agent.move("moved", "x")
    assert interrupted(partial(agent.move, "old", "y"), partial(agent.move, "moved", "root"))["parent_id"] == "y"
    assert_consistent_tree(agent.tenant)


@pytest.mark.usefixtures("families")
def test_delete_while_a_child_is_created(agent: DocumentAgent) -> None:
    for intruder in (lambda: agent.create("new", "b2"), lambda: agent.move("a", "b2")):
        assert interrupted(lambda: delete(agent, "b2"), intruder) == "HAS_CHILDREN"
        delete(agent, agent.children("b2")[0], recursive=True)
    assert (
        interrupted(lambda: delete(agent, "b2"), lambda: agent("restore_document", document_id="new")) == "HAS_CHILDREN"
    )
    assert_consistent_tree(agent.tenant)


@pytest.mark.usefixtures("families")
def test_changes_below_during_recursive_delete(agent: DocumentAgent) -> None:
    """From the first mark on, nothing can move below. A document written earlier is deleted in its latest revision."""
    agent.create("shelter")
    deleting = partial(delete, agent, "b", recursive=True)
    assert interrupted(deleting, partial(agent.create, "late", "b2"), at=2) == "PARENT_DELETED"
    deleting()
    agent("restore_document", document_id="b", recursive=True)
    patch = {"metadata": {"title": "in time"}}
    for at in (2, 3):
        before = agent.get("b2")["revision"]
        updating = partial(agent, "update_document", document_id="b2", patch=patch)
        assert interrupted(deleting, updating, at=at)["deleted"]
        assert agent.history("b2")[-1]["revision"] == before + 2
        agent("restore_document", document_id="b", recursive=True)
        assert agent.get("b2")["metadata"] == patch["metadata"]
    assert interrupted(deleting, partial(agent.move, "b2", "shelter"), at=3)["deleted"]
    assert agent.children("shelter") == ["b2"], "what left in time lives"
    assert_consistent_tree(agent.tenant)


@pytest.mark.usefixtures("families")
def test_delete_during_recursive_restore(agent: DocumentAgent) -> None:
    delete(agent, "b", recursive=True)
    restoring = lambda: agent("restore_document", document_id="b", recursive=True)  # noqa: E731
    assert interrupted(restoring, lambda: delete(agent, "b", recursive=True), at=2) == "PARENT_DELETED"
    assert_consistent_tree(agent.tenant)


def test_parent_of_a_scheduled_deletion(agent: DocumentAgent) -> None:
    """A child's deletion is postponed while its parent's is set."""
    agent.create("p")
    agent.create("a", "p")
    delete(agent, "a", delete_at="2998-01-01T00:00:00Z")
    late = {"delete_at": "2999-01-01T00:00:00Z"}
    soon = {"delete_at": "2998-06-01T00:00:00Z"}
    answer = interrupted(lambda: delete(agent, "a", **late), lambda: delete(agent, "p", **soon))
    assert answer["delete_at"] == soon["delete_at"]
    agent("restore_document", document_id="p")
    agent("restore_document", document_id="a")
    delete(agent, "a", delete_at="2998-01-01T00:00:00Z")
    assert interrupted(lambda: delete(agent, "p", **soon), lambda: delete(agent, "a", **late)) == "HAS_CHILDREN"
    assert (
        interrupted(lambda: agent.create("b", "p"), lambda: delete(agent, "p", recursive=True, **soon))["delete_at"]
        == (soon["delete_at"])
    )
    assert_consistent_tree(agent.tenant)


def test_ancestors_that_change_while_they_are_read(agent: DocumentAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ancestors that are read one after the other may form a path that never existed. Such a path is read again."""
    for name, parent in (("b", "root"), ("a", "b"), ("d", "a"), ("x", "root")):
        agent.create(name, parent)
    positions = Tree.positions
    exchanged: list[str] = []

    def positions_after_exchange(tree: Tree, document_ids: Iterable[str]) -> dict[str, TreePosition]:
        document_ids = list(document_ids)
        if "b" in document_ids and not exchanged:
            exchanged.append("now")
            agent.move("a", "root")
            agent.move("b", "d")
        return positions(tree, document_ids)

    monkeypatch.setattr(Tree, "_expected_ancestors", lambda _, document_id: [document_id])
    monkeypatch.setattr(Tree, "positions", positions_after_exchange)
    assert agent.move("x", "d")["parent_id"] == "d"
    assert exchanged
    assert_consistent_tree(agent.tenant)


def test_interleaved_writes_to_one_document(agent: DocumentAgent) -> None:
    """The second write applies to the result of the first unless it contradicts it."""
    agent.create("p")
    agent.create("a")

    def update(**params: Any) -> Any:
        return agent("update_document", document_id="a", patch={"metadata": {"n": 1}}, **params)

    revision = agent.get("a")["revision"]
    assert interrupted(lambda: update(last_known_revision=revision), lambda: agent.move("a", "p")) == "CONFLICT"
    assert interrupted(update, lambda: agent.move("a", "root"))["revision"] == 4
    assert interrupted(lambda: agent.move("a", "p"), update)["revision"] == 6
    assert interrupted(lambda: agent.move("a", "root"), lambda: agent.move("a", "p", ordering=0))["revision"] == 8
    assert interrupted(update, lambda: delete(agent, "a")) == "NOT_FOUND"
    agent("restore_document", document_id="a")
    assert interrupted(lambda: agent.move("a", "p"), lambda: delete(agent, "a")) == "NOT_FOUND"
    assert_consistent_tree(agent.tenant)


def work_of(agent: DocumentAgent) -> UnitOfWork:
    return UnitOfWork(Table(config().documents_table), agent.tenant)


def rebalance(agent: DocumentAgent, document_id: str) -> None:
    """Give a document another order key at its place, as a new sibling does where keys run out."""
    tree = work_of(agent).tree
    position = tree.find(document_id)
    assert position
    order = SiblingOrder(tree, position.parent_id, "another")
    order._rekey([(_Sibling(position.order_key, document_id), f"{position.order_key}V")])


@pytest.mark.parametrize("change", ["move", "delete", "restore"])
def test_document_that_was_just_rebalanced_is_listed_once(agent: DocumentAgent, change: str) -> None:
    """A new order key changes no revision."""
    agent.create("p")
    agent.create("a")
    if change == "restore":
        delete(agent, "a")
    calls: dict[str, Callable[[], Any]] = {
        "move": lambda: agent.move("a", "p"),
        "delete": lambda: delete(agent, "a"),
        "restore": lambda: agent("restore_document", document_id="a"),
    }
    assert interrupted(calls[change], lambda: rebalance(agent, "a"))["document_id"] == "a"
    assert_consistent_tree(agent.tenant)


def test_sibling_that_just_moved_away_is_not_rebalanced(agent: DocumentAgent) -> None:
    agent.create("p")
    agent.create("a")
    with pytest.raises(ConditionFailed):
        interrupted(lambda: rebalance(agent, "a"), lambda: agent.move("a", "p"))
    assert_consistent_tree(agent.tenant)


def test_height_that_another_document_just_raised_is_not_lowered(agent: DocumentAgent) -> None:
    for top in "ab":
        agent.create(top)
        for level in range(3):
            agent.create(f"{top}{level}", f"{top}{level - 1}" if level else top)
    agent.create("c")
    assert interrupted(lambda: agent.create("new", "c"), lambda: agent.move("a", "c"))["revision"] == 1
    assert_consistent_tree(agent.tenant)
    agent.create("d")
    assert interrupted(lambda: agent.move("c", "d"), lambda: agent.move("b", "a2"))["parent_id"] == "d"
    assert_consistent_tree(agent.tenant)


def test_height_that_was_just_measured_is_raised_again(agent: DocumentAgent) -> None:
    """A height that is too high hides a new level only until it is measured."""
    for name, parent in (("a", "root"), ("a1", "a"), ("a2", "a1")):
        agent.create(name, parent)
    agent.move("a1", "root")
    tree = work_of(agent).tree

    def measure() -> None:
        position = tree.find("a")
        assert position
        measured = tree.measure_height(position, 64)
        measured_height = {":height": measured.height}
        tree.table.write(Write("Update", tree.key("a"), "SET height = :height REMOVE measuring", "", measured_height))

    assert interrupted(lambda: agent.create("new", "a"), measure)["revision"] == 1
    assert_consistent_tree(agent.tenant)


def test_height_is_measured_by_one_of_two_callers(agent: DocumentAgent) -> None:
    """A second measurement would begin at 0 again, without the levels that came during the first."""
    agent.create("a")
    tree = work_of(agent).tree
    position = tree.find("a")
    assert position
    tree.measure_height(position, 64)
    with pytest.raises(ConditionFailed):
        tree.measure_height(position, 64)


def test_measured_height_is_not_stored_over_a_higher_one(agent: DocumentAgent) -> None:
    """The levels came below after they were counted."""
    chain = create_chain(agent, 63)
    for name, parent in (("x", "root"), ("x1", "x"), ("y", "root"), ("y1", "y"), ("y2", "y1")):
        agent.create(name, parent)
    with (
        another_caller(lambda: agent.move("y", "x1"), before="UpdateItem", at=2),
        pytest.raises(KhoError) as refused,
    ):
        agent.move("x", chain[-1])
    assert refused.value.code == "TOO_DEEP"
    assert_consistent_tree(agent.tenant)


def test_parent_whose_scheduled_deletion_was_just_changed(agent: DocumentAgent) -> None:
    """No child outlives its parent."""
    agent.create("p")
    delete(agent, "p", delete_at="2999-01-01T00:00:00Z")
    sooner = {"delete_at": "2998-01-01T00:00:00Z"}
    answer = interrupted(lambda: agent.create("a", "p"), lambda: delete(agent, "p", **sooner))
    assert answer["delete_at"] == sooner["delete_at"]
    assert_consistent_tree(agent.tenant)


def test_child_that_came_just_before_its_parent_moves_below_a_scheduled_deletion(agent: DocumentAgent) -> None:
    """The move would give the parent a deletion time that the child lacks."""
    agent.create("p")
    agent.create("a")
    delete(agent, "p", delete_at="2999-01-01T00:00:00Z")
    assert interrupted(lambda: agent.move("a", "p"), lambda: agent.create("child", "a")) == "PARENT_DELETED"
    assert_consistent_tree(agent.tenant)


def test_result_of_a_repetition_that_took_over_is_not_replaced(agent: DocumentAgent) -> None:
    """A claim that expired belongs to the request that repeated it."""
    store = work_of(agent).idempotency
    caller = Caller("agent", frozenset({"writer"}), agent.tenant)
    request = WriteRequest("delete_document", caller, "c", "hash", "r")
    table = work_of(agent).table
    results = [WriteResult(document_id="a", revision=number, updated_at="", parent_id="root") for number in (1, 2)]
    for write in store.record(request, None):
        table.write(write)
    store.finish(request, results[0])
    store.finish(request, results[1])
    store.release(request)
    stored = store.stored_result(request)
    assert stored
    assert stored.revision == 1


def test_move_before_a_sibling_that_moves_away(agent: DocumentAgent) -> None:
    for name in "abc":
        agent.create(name)
    agent.create("p")
    answer = interrupted(lambda: agent.move("c", "root", before="a"), lambda: agent.move("c", "p"))
    assert answer["parent_id"] == "root"
    assert agent.children()[0] == "c"
    assert_consistent_tree(agent.tenant)


@pytest.mark.usefixtures("families")
def test_levels_added_below_a_moving_document(agent: DocumentAgent) -> None:
    """A height that was read is not used once it has grown."""
    agent.create("deep-1")
    for level in range(2, 62):
        agent.create(f"deep-{level}", f"deep-{level - 1}")
    agent.create("x")
    agent.create("x1", "x")
    assert interrupted(lambda: agent.move("x", "deep-61"), lambda: agent.move("a", "x1")) == "TOO_DEEP"
    assert_consistent_tree(agent.tenant)
