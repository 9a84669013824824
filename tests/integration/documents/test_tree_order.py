"""The tree: order and positions among siblings, on the real store."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from shared.aws.dynamodb import Table, Write, to_item
from shared.documents import fractional_index, sibling_order
from shared.documents.sibling_order import listing_write
from shared.documents.tree import Tree
from shared.documents.unit_of_work import UnitOfWork
from shared.platform.config import config
from shared.rpc.errors import Conflict, InvalidParams, NotFound
from tests.helpers.document_agent import DocumentAgent, assert_consistent_tree, create_chain, expect_error, stored_items
from tests.helpers.dynamodb_requests import intercept_requests
from tests.helpers.size import sized
from tests.helpers.store_faults import transactions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Recorder = Callable[[str, object], None]

INSERTIONS = sized(40, full=2000)
CHILDREN = sized(1100, full=10_000)
"""More siblings than fit on one page."""


@pytest.fixture
def writes_since(agent: DocumentAgent) -> Iterator[list[tuple[str, str]]]:
    """Yield the writes to the store from now on: each kind of write and sort key."""
    recorded: list[tuple[str, str]] = []

    def note(operation: str, params: Any) -> None:
        if operation not in ("TransactWriteItems", "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem"):
            return
        writes = params["TransactItems"] if operation == "TransactWriteItems" else [{operation: params}]
        for each in writes:
            for kind, write in each.items():
                recorded.append((kind, (write.get("Key") or write.get("Item") or {"sk": {"S": ""}})["sk"]["S"]))

    with intercept_requests(note):
        yield recorded


def test_move_cannot_form_a_cycle(agent: DocumentAgent) -> None:
    create_chain(agent, 5)
    for below in ("d1", "d2", "d5"):
        expect_error(Conflict, "CYCLE", agent.move, "d1", below)
    agent.move("d4", "root")
    agent.move("d1", "d5")
    assert agent.children("d5") == ["d1"]
    assert_consistent_tree(agent.tenant)


def test_sibling_positions(agent: DocumentAgent) -> None:
    agent.create("p")
    for name in "abcd":
        agent.create(name, "p")
    for document, position, expected in (
        ("d", {"before": "b"}, "adbc"),
        ("d", {"before": "a"}, "dabc"),
        ("d", {}, "abcd"),
        ("d", {"ordering": 0}, "dabc"),
        ("d", {"ordering": 1}, "adbc"),
        ("a", {"ordering": 3}, "dbca"),
        ("a", {"ordering": 99}, "dbca"),
        ("a", {"ordering": 3, "before": "d"}, "adbc"),
        ("d", {"before": "b"}, "adbc"),
    ):
        agent.move(document, "p", **position)
        assert "".join(agent.children("p")) == expected
    agent.create("x")
    agent.move("x", "p", ordering=2)
    assert "".join(agent.children("p")) == "adxbc"
    assert_consistent_tree(agent.tenant)


def test_hidden_siblings_are_not_counted(agent: DocumentAgent) -> None:
    for name in "abcd":
        agent.create(name)
    agent("delete_document", document_id="a")
    agent("delete_document", document_id="c")
    agent.create("x")
    agent.move("x", "root", ordering=1)
    assert agent.children() == ["b", "x", "d"]
    for name in "ac":
        agent("restore_document", document_id=name)
    assert agent.children() == ["a", "b", "c", "x", "d"]


def test_move_before_a_sibling(agent: DocumentAgent) -> None:
    for name in ("p", "a", "b"):
        agent.create(name)
    agent.create("elsewhere", "p")
    agent.create("gone")
    agent("delete_document", document_id="gone")
    for missing in ("elsewhere", "gone", "nothing"):
        error = expect_error(NotFound, "NOT_FOUND", agent.move, "a", "root", before=missing)
        assert error.details == {"before": missing}
    agent.move("b", "root", before="b")
    assert agent.children() == ["p", "a", "b"], "before itself is where it is"
    for wrong in ({"ordering": -1}, {"ordering": 1.5}, {"after": "b"}):
        with pytest.raises(InvalidParams):
            agent.move("a", "root", **wrong)


def test_an_ordinary_move_rewrites_no_sibling(agent: DocumentAgent, writes_since: list[tuple[str, str]]) -> None:
    agent.create("p")
    for number in range(50):
        agent.create(f"d{number}", "p")
    agent.create("moved")
    for position in ({"before": "d7"}, {"ordering": 3}, {}):
        writes_since.clear()
        agent.move("moved", "p", **position)
        names = sorted((kind, sk.partition("#")[2] if kind != "Update" else sk) for kind, sk in writes_since)
        assert names == [
            ("Delete", "moved"),
            ("Put", "000000000002" if position == {"before": "d7"} else names[1][1]),
            ("Put", "moved"),
            ("Update", "document"),
            ("Update", "position"),
            ("Update", "position"),
        ], "itself, its two places, its audit entry, and that its parent has got it"


@pytest.mark.stress
@pytest.mark.parametrize("pattern", ["before", "ordering"])
def test_many_insertions_at_one_position(
    agent: DocumentAgent, writes_since: list[tuple[str, str]], pattern: str, record_property: Recorder
) -> None:
    """Insertions at one place keep the order, and keys stay short at two rewritten siblings an insertion on average."""
    insertions = INSERTIONS
    agent.create("p")
    for name in ("first", "last"):
        agent.create(name, "p")
    work = UnitOfWork(Table(config().documents_table), agent.tenant)
    for number in range(insertions):
        agent.create(f"d{number}")
    writes_since.clear()
    rewriting = 0
    for number in range(insertions):
        already = len(writes_since)
        agent.move(f"d{number}", "p", **({"before": "last"} if pattern == "before" else {"ordering": 1}))
        rewriting += len(writes_since) - already > 6
    added = [f"d{number}" for number in range(insertions)]
    expected = ["first", *(added if pattern == "before" else reversed(added)), "last"]
    assert agent.children("p") == expected
    keys = [item["sk"].partition("#")[0] for item in stored_items(agent.tenant)["children#p"].values()]
    assert max(map(len, keys)) <= fractional_index.MAX_LENGTH
    assert rewriting <= 1 + insertions // 100, "room is made for a hundred and more at once"
    assert len(writes_since) <= 12 * insertions
    assert work.require("d0").head.revision == 2, "making room changes no document"
    assert_consistent_tree(agent.tenant)
    record_property("load", f"{insertions:,} insertions at one place ({pattern})")
    record_property(
        "outcome", f"all in order, longest key {max(map(len, keys))} characters, room made {rewriting} times"
    )


@pytest.mark.parametrize("pattern", ["before", "ordering", "middle"])
def test_sibling_keys_are_rebalanced_repeatedly(
    agent: DocumentAgent, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    """With a low limit on key lengths, a few insertions have the effect of hundreds."""
    for name, value in (("MAX_LENGTH", 14), ("REBALANCED_LENGTH", 10), ("CROWDED_LENGTH", 7)):
        monkeypatch.setattr(fractional_index, name, value)
    monkeypatch.setattr(sibling_order, "_FIRST_REBALANCE", 8)
    monkeypatch.setattr(sibling_order, "_BATCH", 3)
    agent.create("p")
    expected = ["first", "last"]
    for name in expected:
        agent.create(name, "p")

    def in_order(_: int) -> None:
        assert agent.children("p") == expected

    for number in range(70):
        name = f"d{number}"
        agent.create(name)
        index = {"before": len(expected) - 1, "ordering": 1, "middle": (len(expected) + 1) // 2}[pattern]
        with transactions(in_order):
            agent.move(name, "p", **({"ordering": index} if pattern == "ordering" else {"before": expected[index]}))
        expected.insert(index, name)
    assert agent.children("p") == expected
    positions = assert_consistent_tree(agent.tenant)
    lengths = [len(positions[name].order_key) for name in expected]
    assert max(lengths) <= fractional_index.MAX_LENGTH
    assert sum(positions[name].version for name in expected) > 2 * 70 + 20, "some have got another key than their first"


def test_equal_sibling_keys_are_resolved(agent: DocumentAgent) -> None:
    """Two concurrent appends may choose one key: ids decide the order, and a document fits between them."""
    agent.create("p")
    for name in "abcd":
        agent.create(name, "p")
    tree = Tree(Table(config().documents_table), agent.tenant)
    for name in "bc":
        position = tree.find(name)
        assert position
        same = replace(position, order_key="ggg")
        entry = {**tree.child_key(same), "document_id": name}
        tree.table.transact(
            Write("Delete", tree.child_key(position)),
            Write("Put", entry),
            Write("Put", tree.key(name) | to_item(same)),
        )
    last = tree.find("d")
    assert last
    between = "".join(agent.children("p"))
    assert "bc" in between
    agent.create("x")
    agent.move("x", "p", before="c")
    assert "".join(agent.children("p")) == between.replace("bc", "bxc")
    assert_consistent_tree(agent.tenant)


@pytest.mark.stress
def test_many_children(agent: DocumentAgent, record_property: Recorder) -> None:
    """Children of one parent are listed completely and in order, page by page, and a place among them is exact."""
    # Written directly to the store: only reading is tested.
    agent.create("p")
    agent.create("a", "p")
    work = UnitOfWork(Table(config().documents_table), agent.tenant)
    node = work.require("a")
    names = [f"n{number:05d}" for number in range(CHILDREN)]
    for start in range(0, len(names), 50):
        writes = []
        for name in names[start : start + 50]:
            position = replace(node.position, document_id=name, order_key=f"y{name[1:]}1")
            head = replace(node.head, document_id=name)
            writes += [Write("Put", work.key(name) | to_item(head)), listing_write(work.tree, position)]
        work.table.transact(*writes)
    assert agent.children("p") == ["a", *names]
    agent.create("last", "p")
    agent.create("moved")
    agent.move("moved", "p", ordering=CHILDREN // 2)
    everything = agent.children("p")
    assert (everything[CHILDREN // 2], everything[-1], len(everything)) == ("moved", "last", CHILDREN + 3)
    record_property("load", f"{CHILDREN + 3:,} children of one parent")
    record_property("outcome", "all listed, in order")


def test_a_list_begins_with_any_child_in_both_directions(agent: DocumentAgent) -> None:
    """Pages from a child on, forwards and backwards, join without repeat or gap."""
    names = [f"child-{number}" for number in range(12)]
    for name in names:
        agent.create(name)
    agent.move("child-11", "root", before="child-0")
    names = [names[-1], *names[:-1]]
    agent("delete_document", document_id="child-5")
    alive = [name for name in names if name != "child-5"]
    assert agent.children(backwards=True) == alive[::-1]
    for limit in (1, 4, 100):
        assert agent.children(limit=limit, from_child="child-7") == alive[alive.index("child-7") :]
        before = agent.children(limit=limit, from_child="child-7", backwards=True)
        assert before == alive[: alive.index("child-7") + 1][::-1]
    assert agent.children(from_child="child-5") == alive[alive.index("child-6") :], "a deleted one has its place"
    agent.create("below", "child-1")
    for child in ("below", "nowhere"):
        expect_error(NotFound, "NOT_FOUND", agent.children, from_child=child)
