"""A cursor belongs to the list, the tenant and the filters that it was issued for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from shared.rpc.caller import Caller
from shared.rpc.errors import InvalidParams, KhoError
from tests.helpers.document_agent import DocumentAgent

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def call(agent: DocumentAgent) -> Callable[..., Any]:
    """Return a caller of functions, of the tenant of `agent` by default."""

    def call(function: str, tenant: str = agent.tenant, **params: Any) -> Any:
        caller = Caller("tester", frozenset({"admin"}), tenant).record()
        message = {"method": function, "params": params, "caller": caller, "correlation_id": "cursor-scope"}
        answer = import_module(function).handler(message, None)
        if "error" in answer:
            raise KhoError.from_record(answer["error"])
        return answer["result"]

    return call


def test_cursor_of_another_parent_tenant_or_filter_is_refused(agent: DocumentAgent, call: Callable[..., Any]) -> None:
    for parent in ("p", "q"):
        agent.create(parent)
        for number in range(3):
            agent.create(f"{parent}{number}", parent)
    listing = {"parent_id": "p", "limit": 1}
    cursor = call("agent_data.list_children", **listing)["next_cursor"]
    following = call("agent_data.list_children", **listing | {"limit": 2, "has_children": True}, cursor=cursor)
    assert [each["document_id"] for each in following["children"]] == ["p1", "p2"]
    for function, other in (
        ("list_children", {"parent_id": "q"}),
        ("list_children", {"parent_id": "p", "deleted": True}),
        ("list_children", {"parent_id": "p", "backwards": True}),
        ("list_deleted", {}),
        ("document_history", {"document_id": "p"}),
    ):
        with pytest.raises(InvalidParams, match="cursor: is not a cursor of this list"):
            call(f"agent_data.{function}", **other, cursor=cursor)
    neighbour = DocumentAgent(f"{agent.tenant}-neighbour")
    neighbour.create("p")
    with pytest.raises(InvalidParams):
        call("agent_data.list_children", neighbour.tenant, **listing, cursor=cursor)


def test_cursor_of_a_resource_continues_in_the_conversations_messages(call: Callable[..., Any]) -> None:
    for conversation in ("c", "d"):
        for number in range(3):
            call("memory_server.add_message", conversation_id=conversation, role="user", content=str(number))
    cursor = call("memory_server.resources_read", uri="memory://conversation/c", limit=1)["next_cursor"]
    rest = call("memory_server.get_all_messages", conversation_id="c", cursor=cursor)
    assert [each["content"] for each in rest["messages"]] == ["1", "2"]
    for function, other in (("get_all_messages", "d"), ("list_messages", "c")):
        with pytest.raises(InvalidParams):
            call(f"memory_server.{function}", conversation_id=other, cursor=cursor)


def test_cursor_of_another_prefix_is_refused(call: Callable[..., Any]) -> None:
    for number in range(3):
        call("memory_server.get_or_create", conversation_id=f"chat-{number}")
    for function, member in (("list_conversations", "next_cursor"), ("resources_list", "nextCursor")):
        cursor = call(f"memory_server.{function}", prefix="chat", limit=1)[member]
        assert call(f"memory_server.{function}", prefix="chat", cursor=cursor)
        with pytest.raises(InvalidParams):
            call(f"memory_server.{function}", prefix="ch", cursor=cursor)
