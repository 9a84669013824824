"""One effect per request_id, on the real store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from shared.documents import deletion
from shared.rpc.errors import Conflict, NotFound
from tests.helpers.document_agent import DocumentAgent, expect_error, stored_items
from tests.helpers.interference import another_caller

if TYPE_CHECKING:
    from collections.abc import Callable


def test_request_is_executed_once(agent: DocumentAgent) -> None:
    first = agent.create("a", request_id="r-1")
    again = agent.create("a", request_id="r-1")
    assert again == first | {"replayed": True}
    assert "replayed" not in first
    assert first["request_id"] == "r-1"
    expect_error(Conflict, "IDEMPOTENCY_MISMATCH", agent.create, "a", request_id="r-1", body="other")
    expect_error(Conflict, "IDEMPOTENCY_MISMATCH", agent.create, "b", request_id="r-1")
    expect_error(Conflict, "ALREADY_EXISTS", agent.create, "a", request_id="r-2")
    other = DocumentAgent(f"{agent.tenant}-other")
    assert "replayed" not in other.create("a", request_id="r-1"), "an id of another tenant's is another id"
    patch = {"document_id": "a", "patch": {"metadata": {"title": "once"}}, "request_id": "r-3"}
    assert agent("update_document", **patch)["revision"] == 2
    agent("update_document", document_id="a", patch={"metadata": {"title": "later"}})
    assert agent("update_document", **patch) | {"replayed": None} == agent("update_document", **patch) | {
        "replayed": None
    }
    assert agent.get("a")["metadata"] == {"title": "later"}
    assert agent.history("a")[1]["request_id"] == "r-3"


def test_request_id_of_another_action_is_refused(agent: DocumentAgent) -> None:
    agent.create("a", request_id="r")
    expect_error(Conflict, "IDEMPOTENCY_MISMATCH", agent, "delete_document", document_id="a", request_id="r")
    assert agent.get("a")["document_id"] == "a"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("move_document", {"new_parent_id": "p"}),
        ("edit_document", {"edits": [{"append": "x"}]}),
        ("delete_document", {"reason": "x"}),
        ("delete_document", {"recursive": True}),
        ("restore_document", {}),
        ("restore_document", {"recursive": True}),
    ],
)
def test_every_write_method_is_idempotent(agent: DocumentAgent, method: str, params: dict[str, Any]) -> None:
    agent.create("p")
    agent.create("a")
    agent.create("below", "a")
    if method == "restore_document":
        agent("delete_document", document_id="a", recursive=True)
    if method == "delete_document" and "recursive" not in params:
        agent("delete_document", document_id="below")
    first = agent(method, document_id="a", **params, request_id="r")
    before = stored_items(agent.tenant)
    again = agent(method, document_id="a", **params, request_id="r")
    assert again == first | {"replayed": True}
    assert stored_items(agent.tenant) == before
    expect_error(Conflict, "IDEMPOTENCY_MISMATCH", agent, method, document_id="p", **params, request_id="r")


def test_rejected_request_id_can_be_reused(agent: DocumentAgent) -> None:
    expect_error(NotFound, "NOT_FOUND", agent.create, "a", "p", request_id="r")
    agent.create("p")
    assert "replayed" not in agent.create("a", "p", request_id="r")


def test_idempotency_record_expires_after_a_day(agent: DocumentAgent, clock: Callable[..., None]) -> None:
    """The store may delete an expired entry later: it is ignored already."""
    agent.create("a")
    patch = {"document_id": "a", "patch": {"metadata": {}}, "request_id": "r"}
    agent("update_document", **patch)
    clock(hours=23, minutes=59)
    assert agent("update_document", **patch)["replayed"]
    clock(minutes=2)
    assert agent("update_document", **patch)["revision"] == 3
    assert agent("update_document", **patch)["replayed"], "and kept from then on"


@pytest.mark.parametrize("days", [2, -2])
def test_claim_of_a_wrong_clock_keeps_no_request_waiting(
    agent: DocumentAgent, clock: Callable[..., None], monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    """The server was killed in a recursive deletion while its clock was wrong."""
    agent.create("a")
    agent.create("b", "a")
    clock(days=days)
    with monkeypatch.context() as killing:
        killing.setattr(deletion, "_delete_descendants", killed)
        with pytest.raises(KeyboardInterrupt):
            agent("delete_document", document_id="a", recursive=True, request_id="r")
    expect_error(Conflict, "IN_PROGRESS", agent, "delete_document", document_id="a", recursive=True, request_id="r")
    clock(days=-days)
    assert "replayed" not in agent("delete_document", document_id="a", recursive=True, request_id="r")
    assert agent("delete_document", document_id="a", recursive=True, request_id="r")["replayed"]


def test_id_that_another_request_just_claimed_is_not_used(
    agent: DocumentAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its documents are others, so that only the claim stands against it."""
    for parent in ("a", "b"):
        agent.create(parent)
        agent.create(f"{parent}-child", parent)

    def claim() -> None:
        with monkeypatch.context() as killing:
            killing.setattr(deletion, "_delete_descendants", killed)
            with pytest.raises(KeyboardInterrupt):
                agent("delete_document", document_id="a", recursive=True, request_id="r")

    with another_caller(claim, before="TransactWriteItems"), pytest.raises(Conflict):
        agent("delete_document", document_id="b", recursive=True, request_id="r")
    assert agent.get("b-child")["document_id"] == "b-child"


def test_claim_of_a_killed_request_ends_after_30_seconds(
    agent: DocumentAgent, clock: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent.create("a")
    agent.create("b", "a")
    monkeypatch.setattr("shared.documents.idempotency._CLAIM_SECONDS", 30)
    deletes = {"document_id": "a", "recursive": True, "request_id": "r"}
    with monkeypatch.context() as killing:
        killing.setattr(deletion, "_delete_descendants", killed)
        with pytest.raises(KeyboardInterrupt):
            agent("delete_document", **deletes)
    clock(seconds=29)
    expect_error(Conflict, "IN_PROGRESS", agent, "delete_document", **deletes)
    clock(seconds=2)
    assert "replayed" not in agent("delete_document", **deletes)
    assert agent("delete_document", **deletes)["replayed"]


def killed(*_arguments: Any) -> None:
    raise KeyboardInterrupt


def test_answered_request_is_executed_once_although_the_clock_was_ahead(
    agent: DocumentAgent, clock: Callable[..., None]
) -> None:
    agent.create("a")
    patch = {"document_id": "a", "patch": {"metadata": {}}, "request_id": "r"}
    clock(days=2)
    agent("update_document", **patch)
    clock(days=-2)
    assert agent("update_document", **patch)["replayed"]
