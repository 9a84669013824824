"""One request_id, one effect, on the real store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from shared.rpc.errors import Conflict, NotFound
from tests.documents import Agent, refusal, stored

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_request_is_carried_out_once(agent: Agent) -> None:
    first = agent.create("a", request_id="r-1")
    again = agent.create("a", request_id="r-1")
    assert again == first | {"replayed": True}
    assert "replayed" not in first
    refusal(Conflict, "IDEMPOTENCY_MISMATCH", agent.create, "a", request_id="r-1", body="other")
    refusal(Conflict, "IDEMPOTENCY_MISMATCH", agent.create, "b", request_id="r-1")
    refusal(Conflict, "ALREADY_EXISTS", agent.create, "a", request_id="r-2")
    other = Agent(f"{agent.tenant}-other")
    assert "replayed" not in other.create("a", request_id="r-1"), "an id of another tenant's is another id"
    patch = {"document_id": "a", "patch": {"metadata": {"title": "once"}}, "request_id": "r-1"}
    assert agent("update_document", **patch)["revision"] == 2, "an id is one an action"
    agent("update_document", document_id="a", patch={"metadata": {"title": "later"}})
    assert agent("update_document", **patch) | {"replayed": None} == agent("update_document", **patch) | {
        "replayed": None
    }
    assert agent.get("a")["metadata"] == {"title": "later"}
    assert agent.history("a")[1]["request_id"] == "r-1"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("move_document", {"new_parent_id": "p"}),
        ("delete_document", {"reason": "x"}),
        ("delete_document", {"recursive": True}),
        ("restore_document", {}),
        ("restore_document", {"recursive": True}),
    ],
)
def test_every_write_is_carried_out_once(agent: Agent, method: str, params: dict[str, Any]) -> None:
    agent.create("p")
    agent.create("a")
    agent.create("below", "a")
    if method == "restore_document":
        agent("delete_document", document_id="a", recursive=True)
    if method == "delete_document" and "recursive" not in params:
        agent("delete_document", document_id="below")
    first = agent(method, document_id="a", **params, request_id="r")
    before = stored(agent.tenant)
    again = agent(method, document_id="a", **params, request_id="r")
    assert again == first | {"replayed": True}
    assert stored(agent.tenant) == before
    refusal(Conflict, "IDEMPOTENCY_MISMATCH", agent, method, document_id="p", **params, request_id="r")


def test_what_was_refused_may_be_asked_again(agent: Agent) -> None:
    refusal(NotFound, "NOT_FOUND", agent.create, "a", "p", request_id="r")
    agent.create("p")
    assert "replayed" not in agent.create("a", "p", request_id="r")


def test_a_request_is_forgotten_after_a_day(agent: Agent, clock: Callable[..., None]) -> None:
    """The store may delete it later: it is not believed any more."""
    agent.create("a")
    patch = {"document_id": "a", "patch": {"metadata": {}}, "request_id": "r"}
    agent("update_document", **patch)
    clock(hours=23, minutes=59)
    assert agent("update_document", **patch)["replayed"]
    clock(minutes=2)
    assert agent("update_document", **patch)["revision"] == 3
    assert agent("update_document", **patch)["replayed"], "and kept from then on"
