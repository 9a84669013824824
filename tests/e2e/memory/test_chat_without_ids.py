"""A chatbot that sends no ids: one POST a call, through a whole chat."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.helpers.kho_server import KhoServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def chat_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KhoServer]:
    """Yield a server for clients that send no ids."""
    data = tmp_path_factory.mktemp("chat") / "data"
    with KhoServer(data, environment={"KHO_ANSWER_WITHOUT_ID": "true"}) as running:
        yield running


def post(server: KhoServer, body: Any) -> Any:
    """Send one body, and return the answer's, or None for an empty one."""
    answer = server.post("/jsonrpc", json.dumps(body).encode())
    return json.loads(answer.data) if answer.data else None


def test_a_whole_chat(chat_server: KhoServer) -> None:
    def call(method: str, **params: Any) -> Any:
        answer = post(chat_server, {"jsonrpc": "2.0", "method": method, "params": params})
        assert answer["id"] is None
        assert "error" not in answer, answer
        return answer["result"]

    chat = call("memory-server/memory/get_or_create", conversation_id=None)["conversation_id"]
    for number in range(12):
        role = "assistant" if number % 2 else "user"
        added = call("memory-server/memory/add_message", conversation_id=chat, role=role, content=f"câu {number}")
        assert added == {"status": "success", "conversation_id": chat}
    context = call("memory-server/memory/get_context", conversation_id=chat, max_messages=10)["messages"]
    assert [each["content"] for each in context] == [f"câu {number}" for number in range(6, 12)]
    old = call("memory-server/memory/get_old_messages", conversation_id=chat)
    assert (len(old["messages"]), old["total_count"]) == (6, 12)
    summary = call("memory-server/memory/get_or_create_summary", conversation_id=chat, old_messages=old["messages"])
    assert summary["summary"] == ""
    call("memory-server/memory/set_summary", conversation_id=chat, summary="Mười hai câu.")
    assert call("memory-server/memory/get_summary", conversation_id=chat)["summary"] == "Mười hai câu."
    call("memory-server/memory/clear", conversation_id=chat)
    assert call("memory-server/memory/get_all_messages", conversation_id=chat)["messages"] == []


def test_error_without_an_id_is_answered(chat_server: KhoServer) -> None:
    unknown = post(chat_server, {"jsonrpc": "2.0", "method": "memory-server/memory/get_context", "params": {}})
    assert (unknown["id"], unknown["error"]["code"]) == (None, -32602)
    assert post(chat_server, {"jsonrpc": "2.0", "method": "tool-server/tools/list", "id": 7})["id"] == 7


def test_notifications_of_a_batch_stay_unanswered(chat_server: KhoServer) -> None:
    notice = {"jsonrpc": "2.0", "method": "tool-server/tools/list"}
    assert post(chat_server, [notice]) is None
    assert [each["id"] for each in post(chat_server, [notice, notice | {"id": 7}])] == [7]
