"""memory-server's contract: each of its requests, and exactly the documented shapes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from tests.helpers.kho_server import KhoServer


def rpc(server: KhoServer, method: str, params: dict[str, Any], id_: int) -> Any:
    """Return the result of a request in the contract's own form."""
    answer = server.rpc({"jsonrpc": "2.0", "method": method, "params": params, "id": id_})
    assert set(answer) == {"jsonrpc", "result", "id"}, answer
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", id_)
    return answer["result"]


@pytest.fixture
def chat(server: KhoServer) -> str:
    """Return a conversation of ten messages."""
    conversation_id = f"chat_{uuid4().hex}"
    for number in range(10):
        role = "user" if number % 2 == 0 else "assistant"
        server.call(
            "memory-server/memory/add_message", conversation_id=conversation_id, role=role, content=f"tin nhắn {number}"
        )
    return conversation_id


def messages_between(first: int, last: int) -> list[dict[str, str]]:
    """Return messages `first` to `last` of the conversation."""
    return [
        {"role": "user" if number % 2 == 0 else "assistant", "content": f"tin nhắn {number}"}
        for number in range(first, last + 1)
    ]


def test_health(server: KhoServer) -> None:
    response = server.get("/health")
    assert response.status == 200
    body = json.loads(response.data)
    assert set(body) == {"status", "servers"}
    assert body["status"] == "healthy"
    assert {"memory-server", "tool-server"} <= set(body["servers"])


def test_servers(server: KhoServer) -> None:
    listed = {each["name"]: each for each in json.loads(server.get("/servers").data)["servers"]}
    for each in listed.values():
        assert set(each) == {"name", "capabilities"}
        assert set(each["capabilities"]) == {"tools", "resources", "prompts"}
    memory, tool = listed["memory-server"]["capabilities"], listed["tool-server"]["capabilities"]
    assert memory["tools"] == memory["prompts"] == []
    assert memory["resources"][0]["mimeType"] == "application/json"
    assert [each["name"] for each in tool["tools"]] == ["duckduckgo_search"]
    assert tool["resources"] == tool["prompts"] == []


def test_capabilities(server: KhoServer) -> None:
    listed = {each["name"]: each["capabilities"] for each in json.loads(server.get("/servers").data)["servers"]}
    for name, capabilities in listed.items():
        answer = json.loads(server.get(f"/servers/{name}/capabilities").data)
        assert answer == {"server_name": name, "capabilities": capabilities}
    unknown = server.get("/servers/no-server/capabilities")
    assert unknown.status == 404
    assert json.loads(unknown.data)["error"]["code"] == "NOT_FOUND"


def test_get_or_create(server: KhoServer) -> None:
    conversation = rpc(server, "memory-server/memory/get_or_create", {}, 1)
    assert set(conversation) == {"conversation_id"}
    assert conversation["conversation_id"].startswith("chat_")
    again = rpc(server, "memory-server/memory/get_or_create", conversation, 2)
    assert again == conversation
    wished = f"chat_{uuid4().hex}"
    assert rpc(server, "memory-server/memory/get_or_create", {"conversation_id": wished}, 3) == {
        "conversation_id": wished
    }
    assert rpc(server, "memory-server/memory/get_context", {"conversation_id": wished}, 4) == {"messages": []}


def test_get_context_returns_the_last_six_messages(server: KhoServer, chat: str) -> None:
    params = {"conversation_id": chat, "max_messages": 20}
    assert rpc(server, "memory-server/memory/get_context", params, 2) == {"messages": messages_between(4, 9)}
    fewer = {"conversation_id": chat, "max_messages": 2}
    assert rpc(server, "memory-server/memory/get_context", fewer, 2) == {"messages": messages_between(8, 9)}
    assert rpc(server, "memory-server/memory/get_context", {"conversation_id": chat}, 2) == {
        "messages": messages_between(4, 9)
    }


def test_get_all_messages(server: KhoServer, chat: str) -> None:
    assert rpc(server, "memory-server/memory/get_all_messages", {"conversation_id": chat}, 2) == {
        "messages": messages_between(0, 9)
    }


def test_get_old_messages(server: KhoServer, chat: str) -> None:
    assert rpc(server, "memory-server/memory/get_old_messages", {"conversation_id": chat}, 3) == {
        "messages": messages_between(0, 3),
        "total_count": 10,
    }


def test_summary(server: KhoServer, chat: str) -> None:
    params = {"conversation_id": chat, "old_messages": messages_between(0, 3), "language": "vi"}
    assert rpc(server, "memory-server/memory/get_or_create_summary", params, 4) == {"summary": ""}
    assert rpc(server, "memory-server/memory/get_summary", {"conversation_id": chat}, 7) == {"summary": ""}
    summary = "Tóm tắt câu trả lời 1\n\nTóm tắt câu trả lời 2"
    stored = {"conversation_id": chat, "summary": summary, "compress": False}
    assert rpc(server, "memory-server/memory/set_summary", stored, 5) == {"status": "success", "conversation_id": chat}
    assert rpc(server, "memory-server/memory/get_summary", {"conversation_id": chat}, 7) == {"summary": summary}
    assert rpc(server, "memory-server/memory/get_or_create_summary", params, 4) == {"summary": summary}
    # The summary covers them all. The full history stays.
    assert rpc(server, "memory-server/memory/get_old_messages", {"conversation_id": chat}, 3) == {
        "messages": [],
        "total_count": 10,
    }
    assert rpc(server, "memory-server/memory/get_all_messages", {"conversation_id": chat}, 2) == {
        "messages": messages_between(0, 9)
    }


def test_add_message(server: KhoServer) -> None:
    conversation_id = f"chat_{uuid4().hex}"
    for role in ("user", "assistant", "system"):
        message = {"conversation_id": conversation_id, "role": role, "content": "Message content"}
        assert rpc(server, "memory-server/memory/add_message", message, 6) == {
            "status": "success",
            "conversation_id": conversation_id,
        }


def test_clear_keeps_conversation_and_removes_messages(server: KhoServer, chat: str) -> None:
    for _ in range(2):
        assert rpc(server, "memory-server/memory/clear", {"conversation_id": chat}, 8) == {
            "status": "cleared",
            "conversation_id": chat,
        }
        assert rpc(server, "memory-server/memory/get_all_messages", {"conversation_id": chat}, 2) == {"messages": []}


def test_delete_removes_conversation_and_messages(server: KhoServer, chat: str) -> None:
    for _ in range(2):
        assert rpc(server, "memory-server/memory/delete", {"conversation_id": chat}, 9) == {
            "status": "deleted",
            "conversation_id": chat,
        }
    assert server.error("memory-server/memory/get_all_messages", conversation_id=chat)["code"] == -32001
    listed = server.call("memory-server/resources/list", limit=1000)["resources"]
    assert chat not in {each["uri"].rpartition("/")[2] for each in listed}


def test_resources(server: KhoServer, chat: str) -> None:
    listed = rpc(server, "memory-server/resources/list", {"limit": 1000}, 10)["resources"]
    uri = f"memory://conversation/{chat}"
    assert {
        "uri": uri,
        "name": f"Conversation {chat}",
        "description": f"Conversation history for {chat}",
        "mimeType": "application/json",
    } in listed
    contents = rpc(server, "memory-server/resources/read", {"uri": uri}, 11)["contents"]
    assert [(each["uri"], each["mimeType"]) for each in contents] == [(uri, "application/json")]
    text = json.loads(contents[0]["text"])
    assert set(text) == {"messages", "summary"}
    assert text["messages"] == messages_between(0, 9)


def test_tools_list(server: KhoServer) -> None:
    assert rpc(server, "tool-server/tools/list", {}, 12) == {
        "tools": [
            {
                "name": "duckduckgo_search",
                "description": "Search using DuckDuckGo (free, unlimited, privacy-focused). Returns up to 5 relevant "
                "search results with titles, content snippets, and links.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "query": {
                            "type": "string",
                            "description": "Search query - should be specific and descriptive for best results",
                        }
                    },
                    "required": ["query"],
                },
            }
        ]
    }
