"""Deleting and restoring a thousand documents, and completing an interrupted deletion, on the real store."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.template import load
from shared.documents import idempotency
from shared.rpc import timestamps
from shared.rpc.errors import Conflict, Internal, Unavailable
from tests.helpers.document_agent import DocumentAgent, assert_consistent_tree, expect_error
from tests.helpers.size import sized
from tests.helpers.store_faults import failing_transactions_from, transactions
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

DELETE = {"document_id": "top", "recursive": True}

DESCENDANTS = sized(100, full=1000)


def forest(agent: DocumentAgent, size: int) -> list[str]:
    """Create a random tree below one document."""
    chance = random.Random(size)
    names = ["top", *(f"d{number}" for number in range(1, size + 1))]
    agent.create("top")
    for number, name in enumerate(names[1:], 1):
        agent.create(name, names[chance.randrange(max(0, number - 60), number)])
    return names


def living(agent: DocumentAgent, *, unfinished: bool = False) -> set[str]:
    """Return the documents that are not deleted."""
    positions = assert_consistent_tree(agent.tenant, unfinished=unfinished)
    return {name for name, position in positions.items() if not position.deleted(timestamps.now())}


@pytest.mark.stress
def test_recursive_delete_of_many_descendants(
    agent: DocumentAgent, record_property: Callable[[str, object], None]
) -> None:
    """Repeating an interrupted recursive deletion or restoration completes it. Each document changes once."""
    names = forest(agent, DESCENDANTS)
    agent.create("sibling")
    agent("delete_document", document_id=names[DESCENDANTS * 9 // 10], recursive=True)
    gone_before = set(names) - living(agent)
    assert names[DESCENDANTS * 9 // 10] in gone_before

    with failing_transactions_from(DESCENDANTS // 25):
        expect_error(Unavailable, "UNAVAILABLE", agent, "delete_document", **DELETE, request_id="r")
    survivors = living(agent, unfinished=True)
    assert DESCENDANTS // 10 < len(survivors) < DESCENDANTS * 9 // 10, "it broke off in the midst"
    assert "top" not in survivors
    answer = agent("delete_document", **DELETE, request_id="r")
    assert (answer["deleted"], answer["revision"]) == (True, 2)
    assert living(agent) == {"sibling"}
    assert agent.children() == ["sibling"]
    entry = agent.history(names[DESCENDANTS // 2])[-1]
    assert (entry["action"], entry["together_with"], entry["request_id"]) == ("delete_document", "top", "r")

    restore = {"document_id": "top", "recursive": True, "request_id": "s"}
    with failing_transactions_from(DESCENDANTS // 25):
        expect_error(Unavailable, "UNAVAILABLE", agent, "restore_document", **restore)
    assert DESCENDANTS // 10 < len(living(agent)) < DESCENDANTS * 9 // 10
    agent("restore_document", **restore)
    assert living(agent) == {"sibling", *names} - gone_before, "what was deleted before stays so"
    assert all(len(agent.history(name)) == 3 for name in chance_of(names, gone_before)), "each was marked once"
    record_property("load", f"{DESCENDANTS:,} descendants, deletion and restoration each broken off once")
    record_property("outcome", "all deleted, all restored, 0 changed twice")


def chance_of(names: list[str], but: set[str]) -> list[str]:
    """Return some of the names."""
    return random.Random(0).sample(sorted(set(names) - but), 30)


@pytest.mark.parametrize("with_id", [True, False])
@pytest.mark.parametrize("broken_at", [1, 2, 3])
def test_interrupted_request_is_completed_by_retry(agent: DocumentAgent, broken_at: int, *, with_id: bool) -> None:
    names = forest(agent, 24)
    params: dict[str, Any] = DELETE | ({"request_id": "r"} if with_id else {})
    with failing_transactions_from(broken_at):
        expect_error(Unavailable, "UNAVAILABLE", agent, "delete_document", **params)
    answer = agent("delete_document", **params)
    assert (answer["deleted"], answer["revision"]) == (True, 2)
    assert not living(agent)
    assert all(len(agent.history(name)) == 2 for name in names)


def test_retry_while_the_first_request_runs(agent: DocumentAgent) -> None:
    forest(agent, 24)
    running, go_on = threading.Event(), threading.Event()

    def wait(number: int) -> None:
        if number == 3:
            running.set()
            assert go_on.wait(CEILING_SECONDS)

    with ThreadPoolExecutor(1) as pool, transactions(wait):
        first = pool.submit(agent, "delete_document", **DELETE, request_id="r")
        assert running.wait(CEILING_SECONDS)
        error = expect_error(Conflict, "IN_PROGRESS", agent, "delete_document", **DELETE, request_id="r")
        assert error.details["retryable"]
        other = DELETE | {"reason": "another"}
        expect_error(Conflict, "IDEMPOTENCY_MISMATCH", agent, "delete_document", **other, request_id="r")
        go_on.set()
        answer = first.result(CEILING_SECONDS)
    assert agent("delete_document", **DELETE, request_id="r") == answer | {"replayed": True}


def test_retry_after_the_first_request_crashed(
    agent: DocumentAgent, clock: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request without an answer counts as running until its claim lapses, which is later than any function ends."""
    monkeypatch.setattr(idempotency, "_CLAIM_SECONDS", 30)
    assert max(each.timeout for each in load().functions.values() if each.name.startswith("agent_data-")) < 30
    forest(agent, 24)

    def crash(number: int) -> None:
        if number == 3:
            raise RuntimeError("the function crashed")

    with transactions(crash):
        expect_error(Internal, "INTERNAL_ERROR", agent, "delete_document", **DELETE, request_id="r")
    expect_error(Conflict, "IN_PROGRESS", agent, "delete_document", **DELETE, request_id="r")
    clock(seconds=31)
    answer = agent("delete_document", **DELETE, request_id="r")
    assert (answer["deleted"], answer["revision"], "replayed" in answer) == (True, 2, False)
    assert not living(agent)
    assert agent("delete_document", **DELETE, request_id="r")["replayed"]


def test_non_recursive_restore_keeps_children_deleted(agent: DocumentAgent) -> None:
    names = forest(agent, 8)
    agent("delete_document", **DELETE)
    agent("restore_document", document_id="top")
    assert living(agent) == {"top"}
    agent("restore_document", document_id="top", recursive=True)
    assert living(agent) == set(names)
    agent("delete_document", **DELETE)
    agent("restore_document", document_id="top", recursive=True)
    assert living(agent) == set(names)


def test_recursive_scheduled_deletion_is_cancelled_recursively(
    agent: DocumentAgent, clock: Callable[..., None]
) -> None:
    names = forest(agent, 8)
    agent("delete_document", **DELETE, delete_at="2999-01-01T00:00:00Z")
    agent("restore_document", document_id="top", recursive=True)
    assert all(position.delete_at is None for position in assert_consistent_tree(agent.tenant).values())
    agent("delete_document", **DELETE, delete_at="2999-01-01T00:00:00Z")
    agent("delete_document", **DELETE, delete_at="2998-01-01T00:00:00Z")
    moments_of = {position.delete_at for position in assert_consistent_tree(agent.tenant).values()}
    assert moments_of == {timestamps.from_iso("2998-01-01T00:00:00Z")}
    agent("delete_document", **DELETE)
    assert not living(agent)
    agent("restore_document", document_id="top", recursive=True)
    assert living(agent) == set(names)


@pytest.mark.parametrize("broken_at", [None, 2])
def test_cancelled_deletion_takes_nothing(
    agent: DocumentAgent, clock: Callable[..., None], broken_at: int | None
) -> None:
    """Without `recursive`, a scheduled deletion is cancelled for all that it would take, and for nothing else."""
    names = forest(agent, 30)
    agent.create("own")
    agent("move_document", document_id="own", new_parent_id="d1")
    agent("delete_document", document_id="own", delete_at="2998-01-01T00:00:00Z")
    agent("delete_document", **DELETE, delete_at="2999-01-01T00:00:00Z")
    agent.create("late", "d1")
    if broken_at is not None:
        with failing_transactions_from(broken_at):
            expect_error(Unavailable, "UNAVAILABLE", agent, "restore_document", document_id="top")
        unfinished = assert_consistent_tree(agent.tenant, unfinished=True)
        assert any(position.delete_at for name, position in unfinished.items() if name != "own")
    agent("restore_document", document_id="top")
    clock(days=400_000)  # after the year 2999
    assert living(agent) == {*names, "late"}
