"""Many concurrent writers with threads on the real store: nothing is lost, doubled, cyclic or half done."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from shared.rpc.errors import Conflict, KhoError
from tests.helpers.document_agent import DocumentAgent, assert_consistent_tree
from tests.helpers.size import sized
from tests.helpers.store_faults import conflicting_transactions

if TYPE_CHECKING:
    from collections.abc import Callable

    Recorder = Callable[[str, object], None]

SEEDS = sized(1, full=20)
EXPECTED = {"CYCLE", "CONFLICT"}


def outcome(call: Callable[[], Any]) -> Any:
    """Return the result of a call, or its error's code."""
    try:
        return call()
    except KhoError as error:
        return error.code


def run_concurrently(writers: int, call: Callable[[int], Any]) -> list[Any]:
    """Run the writers concurrently and return their results."""
    with ThreadPoolExecutor(writers) as pool:
        return list(pool.map(lambda writer: outcome(lambda: call(writer)), range(writers)))


def random_tree(agent: DocumentAgent, size: int, chance: random.Random) -> list[str]:
    """Create a random tree and return its documents."""
    names = [f"d{number}" for number in range(size)]
    for number, name in enumerate(names):
        agent.create(name, chance.choice(["root", *names[:number]]))
    return names


@pytest.mark.stress
@pytest.mark.parametrize("writers", [8, 32])
def test_random_concurrent_moves_keep_the_tree_valid(
    agent: DocumentAgent, writers: int, record_property: Recorder
) -> None:
    """Concurrent moves lose no document and close no cycle, and each is in the history of its document."""
    moves = sized(3, full=20)
    seen: Counter[str] = Counter()
    for seed in range(SEEDS):
        seen += move_at_random(DocumentAgent(f"{agent.tenant}-{seed}"), writers, moves, seed)
    record_property("load", f"{SEEDS} seeds x {writers} writers, {SEEDS * writers * moves:,} moves")
    record_property("outcome", f"0 lost, 0 cycles; {', '.join(f'{seen[each]:,} {each}' for each in sorted(seen))}")


def move_at_random(agent: DocumentAgent, writers: int, moves: int, seed: int) -> Counter[str]:
    """Return the number of moves by their outcome. Check the invariants afterwards."""
    names = random_tree(agent, sized(40, full=200), random.Random(seed))

    def move(writer: int) -> Counter[str]:
        chance = random.Random(seed * 1000 + writer)
        seen: Counter[str] = Counter()
        for _ in range(moves):
            document, parent = chance.choice(names), chance.choice(["root", *names])
            place: dict[str, Any] = chance.choice([{}, {"ordering": chance.randrange(5)}])
            answer = outcome(lambda: agent.move(document, parent, **place))  # noqa: B023 - called immediately
            seen[answer if isinstance(answer, str) else "moved"] += 1
        return seen

    seen: Counter[str] = sum(run_concurrently(writers, move), Counter())
    assert set(seen) <= EXPECTED | {"moved"}, seen
    assert seen.total() == writers * moves
    positions = assert_consistent_tree(agent.tenant)
    assert set(positions) == set(names)
    assert sum(len(agent.history(name)) - 1 for name in names) == seen["moved"] > 0
    return seen


@pytest.mark.stress
def test_concurrent_moves_cannot_form_a_cycle(agent: DocumentAgent, record_property: Recorder) -> None:
    """Of two concurrent moves that would close a cycle together, one is refused, through chains of some length."""
    turns = sized(5, full=300)
    for turn in range(turns):
        a, b = f"a{turn}", f"b{turn}"
        for top in (a, b):
            agent.create(top)
            agent.create(f"{top}-1", top)
            agent.create(f"{top}-2", f"{top}-1")
        pairs = [(a, f"{b}-2"), (b, f"{a}-2")]
        answers = run_concurrently(2, lambda writer: agent.move(*pairs[writer]))  # noqa: B023 - called immediately
        refused = [answer for answer in answers if isinstance(answer, str)]
        assert len(refused) == 1
        assert refused[0] in EXPECTED
    assert_consistent_tree(agent.tenant)
    record_property("load", f"{turns} pairs of moves at once")
    record_property("outcome", f"{turns} refused, 0 cycles")


@pytest.mark.stress
def test_concurrent_create_delete_restore_move(agent: DocumentAgent, record_property: Recorder) -> None:
    """A deleted document has no live descendants under concurrent creations, moves, deletions and restorations."""
    turns = sized(6, full=12)
    for seed in range(SEEDS):
        change_at_random(DocumentAgent(f"{agent.tenant}-{seed}"), turns, seed)
    record_property("load", f"{SEEDS} seeds x 8 writers, {SEEDS * 8 * turns:,} changes")
    record_property("outcome", "0 lost, 0 live below a deleted one")


def change_at_random(agent: DocumentAgent, turns: int, seed: int) -> None:
    """Change a tree by eight concurrent writers. Check the invariants afterwards."""
    names = random_tree(agent, 40, random.Random(seed))
    allowed = {"CYCLE", "CONFLICT", "NOT_FOUND", "PARENT_DELETED", "HAS_CHILDREN"}

    def change(writer: int) -> set[str]:
        chance = random.Random(seed * 1000 + writer)
        seen = set()
        for turn in range(turns):
            document, parent = chance.choice(names), chance.choice(["root", *names])
            calls: list[Callable[[], Any]] = [
                lambda: agent.create(f"n{writer}-{turn}", parent),  # noqa: B023 - called immediately
                lambda: agent.move(document, parent),  # noqa: B023
                lambda: agent("delete_document", document_id=document, recursive=chance.random() < 0.6),  # noqa: B023
                lambda: agent("restore_document", document_id=document, recursive=chance.random() < 0.6),  # noqa: B023
                lambda: agent("update_document", document_id=document, patch={"metadata": {"n": turn}}),  # noqa: B023
            ]
            answer = outcome(chance.choice(calls))
            if isinstance(answer, str):
                seen.add(answer)
        return seen

    seen = set().union(*run_concurrently(8, change))
    assert seen <= allowed
    positions = assert_consistent_tree(agent.tenant)
    assert set(names) <= set(positions)
    now_living = {name for name, position in positions.items() if position.delete_at is None}
    assert all(positions[name].parent_id in {"root", *now_living} for name in now_living)


def test_concurrent_updates_of_one_revision_have_one_winner(agent: DocumentAgent) -> None:
    agent.create("a")

    def update(writer: int) -> Any:
        try:
            patch = {"metadata": {"writer": writer}}
            return agent("update_document", document_id="a", patch=patch, last_known_revision=1)
        except Conflict as error:
            return error

    answers = run_concurrently(32, update)
    won = [writer for writer, answer in enumerate(answers) if isinstance(answer, dict)]
    lost = [answer for answer in answers if isinstance(answer, Conflict)]
    assert (len(won), len(lost)) == (1, 31)
    assert {(error.code, error.details["current_revision"]) for error in lost} == {("CONFLICT", 2)}
    assert agent.get("a")["metadata"] == {"writer": won[0]}
    assert_consistent_tree(agent.tenant)


def test_unconditional_updates_all_apply(agent: DocumentAgent) -> None:
    agent.create("a")
    answers = run_concurrently(
        8, lambda writer: agent("update_document", document_id="a", patch={"metadata": {"n": writer}})
    )
    revisions = sorted(answer["revision"] for answer in answers if isinstance(answer, dict))
    assert revisions == list(range(2, 2 + len(revisions)))
    assert agent.get("a")["revision"] == 1 + len(revisions)


def test_concurrent_creates_of_one_id_have_one_winner(agent: DocumentAgent) -> None:
    answers = run_concurrently(32, lambda writer: agent.create("a", body=f"of {writer}"))
    won = [writer for writer, answer in enumerate(answers) if isinstance(answer, dict)]
    assert len(won) == 1
    assert [answer for answer in answers if answer == "ALREADY_EXISTS"] == ["ALREADY_EXISTS"] * 31
    assert agent.get("a")["content"]["body"] == f"of {won[0]}"
    assert agent.children() == ["a"]
    assert_consistent_tree(agent.tenant)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("create_document", {"document_id": "new", "parent_id": "a", "content": {"body": "x"}}),
        ("update_document", {"document_id": "a", "patch": {"metadata": {"title": "once"}}}),
        ("move_document", {"document_id": "a", "new_parent_id": "p"}),
        ("delete_document", {"document_id": "a", "recursive": True}),
        ("restore_document", {"document_id": "gone", "recursive": True}),
    ],
)
def test_concurrent_copies_of_one_request_have_one_effect(
    agent: DocumentAgent, method: str, params: dict[str, Any]
) -> None:
    for name, parent in (("p", "root"), ("a", "root"), ("below", "a"), ("gone", "root"), ("with-it", "gone")):
        agent.create(name, parent)
    agent("delete_document", document_id="gone", recursive=True)
    answers = run_concurrently(32, lambda _: agent(method, **params, request_id="once"))
    done = [answer for answer in answers if answer != "IN_PROGRESS"]
    assert len([answer for answer in done if "replayed" not in answer]) == 1
    assert len({str({**answer, "replayed": None}) for answer in done}) == 1
    changed = params["document_id"]
    log = [entry for entry in agent.history(changed) if entry.get("request_id") == "once"]
    assert len(log) == 1
    assert agent(method, **params, request_id="once")["replayed"]
    assert_consistent_tree(agent.tenant)


def test_request_id_reused_with_another_payload_is_rejected(agent: DocumentAgent) -> None:
    agent.create("a")
    patches = [{"metadata": {"writer": writer % 2}} for writer in range(16)]
    answers = run_concurrently(
        16, lambda writer: agent("update_document", document_id="a", patch=patches[writer], request_id="r")
    )
    effect = agent.get("a")["metadata"]["writer"]
    for writer, answer in enumerate(answers):
        assert isinstance(answer, dict) if writer % 2 == effect else answer == "IDEMPOTENCY_MISMATCH"
    assert agent.get("a")["revision"] == 2


def test_conflicting_transactions_are_retried(agent: DocumentAgent) -> None:
    """DynamoDB raises TransactionConflict when two transactions touch one item. No local store does."""
    agent.create("p")
    with conflicting_transactions(times=4) as met:
        agent.create("a", "p", request_id="r")
    assert met == [4]
    assert agent.create("a", "p", request_id="r")["replayed"]
    with conflicting_transactions(times=1000):
        assert outcome(lambda: agent.move("a", "root")) == "UNAVAILABLE"
    assert agent.get("a")["revision"] == 1
    assert_consistent_tree(agent.tenant)
