"""The 15 examples of section 7 of the JSON-RPC 2.0 specification, with our method names, and unspecified cases."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
import urllib3

if TYPE_CHECKING:
    from tests.helpers.kho_server import KhoServer

ADD = "memory-server/memory/add_message"
GET = "memory-server/memory/get_all_messages"
INVALID = {"code": -32600, "message": "Invalid Request"}


@pytest.fixture
def chat(server: KhoServer) -> str:
    return f"chat_{uuid4().hex}"


def send(server: KhoServer, text: str) -> tuple[int, Any]:
    """Send a body unchanged. Return the status and the answer without `data`, our extension, which others test."""
    response = server.post("/jsonrpc", text.encode())
    answer = json.loads(response.data) if response.data else None
    for each in answer if isinstance(answer, list) else [answer]:
        if each and "error" in each:
            data = each["error"].pop("data")
            assert set(data) == {"code", "details", "guidance"}
    return response.status, answer


def contents(server: KhoServer, chat: str) -> list[str]:
    """Return the contents of the conversation's messages."""
    return [message["content"] for message in server.call(GET, conversation_id=chat)["messages"]]


@pytest.mark.parametrize(("content", "id_"), [("42", 1), ("23", 2)])
def test_positional_parameters(server: KhoServer, chat: str, content: str, id_: int) -> None:
    body = {"jsonrpc": "2.0", "method": ADD, "params": [chat, "user", content], "id": id_}
    assert send(server, json.dumps(body)) == (
        200,
        {"jsonrpc": "2.0", "result": {"status": "success", "conversation_id": chat}, "id": id_},
    )
    assert contents(server, chat) == [content]


@pytest.mark.parametrize(("order", "id_"), [(1, 3), (-1, 4)])
def test_named_parameters_in_any_order(server: KhoServer, chat: str, order: int, id_: int) -> None:
    params = dict([("conversation_id", chat), ("role", "user"), ("content", "23")][::order])
    assert send(server, json.dumps({"jsonrpc": "2.0", "method": ADD, "params": params, "id": id_})) == (
        200,
        {"jsonrpc": "2.0", "result": {"status": "success", "conversation_id": chat}, "id": id_},
    )


@pytest.mark.parametrize(
    ("content_type", "status"), [("application/json-rpc", 200), ("text/plain", -32600), (None, -32600)]
)
def test_content_types(server: KhoServer, content_type: str | None, status: int) -> None:
    headers = {"content-type": content_type} if content_type else {}
    body = b'{"jsonrpc": "2.0", "method": "tool-server/tools/list", "id": 1}'
    answer = urllib3.request("POST", f"{server.address}/jsonrpc", body=body, headers=headers)
    assert answer.json().get("error", {"code": answer.status})["code"] == status


def test_notification(server: KhoServer, chat: str) -> None:
    body = {"jsonrpc": "2.0", "method": ADD, "params": [chat, "user", "told"]}
    assert send(server, json.dumps(body)) == (204, None)
    assert contents(server, chat) == ["told"]


def test_notification_of_an_unknown_method(server: KhoServer) -> None:
    assert send(server, '{"jsonrpc": "2.0", "method": "foobar"}') == (204, None)


def test_unknown_method(server: KhoServer) -> None:
    assert send(server, '{"jsonrpc": "2.0", "method": "foobar", "id": "1"}') == (
        200,
        {"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}, "id": "1"},
    )


def test_invalid_json(server: KhoServer) -> None:
    assert send(server, '{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]') == (
        200,
        {"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}, "id": None},
    )


def test_invalid_request(server: KhoServer) -> None:
    assert send(server, '{"jsonrpc": "2.0", "method": 1, "params": "bar"}') == (
        200,
        {"jsonrpc": "2.0", "error": INVALID, "id": None},
    )


def test_batch_of_invalid_json(server: KhoServer) -> None:
    body = """[
      {"jsonrpc": "2.0", "method": "memory-server/memory/get_or_create", "params": {}, "id": "1"},
      {"jsonrpc": "2.0", "method"
    ]"""
    assert send(server, body) == (
        200,
        {"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}, "id": None},
    )


def test_empty_batch(server: KhoServer) -> None:
    assert send(server, "[]") == (200, {"jsonrpc": "2.0", "error": INVALID, "id": None})


@pytest.mark.parametrize("body", ["[1]", "[1,2,3]"])
def test_batch_of_invalid_requests(server: KhoServer, body: str) -> None:
    assert send(server, body) == (200, [{"jsonrpc": "2.0", "error": INVALID, "id": None}] * len(json.loads(body)))


def test_mixed_batch(server: KhoServer, chat: str) -> None:
    wished = f"chat_{uuid4().hex}"
    batch = [
        {"jsonrpc": "2.0", "method": ADD, "params": [chat, "user", "1"], "id": "1"},
        {"jsonrpc": "2.0", "method": ADD, "params": [f"{chat}_2", "user", "7"]},
        {"jsonrpc": "2.0", "method": "memory-server/memory/get_or_create", "params": [wished], "id": "2"},
        {"foo": "boo"},
        {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},
        {"jsonrpc": "2.0", "method": "tool-server/tools/list", "id": "9"},
    ]
    status, answers = send(server, json.dumps(batch))
    assert status == 200
    tools = answers.pop()
    assert (tools["id"], tools["result"]["tools"][0]["name"]) == ("9", "duckduckgo_search")
    assert answers == [
        {"jsonrpc": "2.0", "result": {"status": "success", "conversation_id": chat}, "id": "1"},
        {"jsonrpc": "2.0", "result": {"conversation_id": wished}, "id": "2"},
        {"jsonrpc": "2.0", "error": INVALID, "id": None},
        {"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}, "id": "5"},
    ]
    assert contents(server, f"{chat}_2") == ["7"]


def test_batch_of_notifications(server: KhoServer, chat: str) -> None:
    batch = [
        {"jsonrpc": "2.0", "method": ADD, "params": [chat, "user", "1"]},
        {"jsonrpc": "2.0", "method": ADD, "params": [chat, "user", "2"]},
    ]
    assert send(server, json.dumps(batch)) == (204, None)
    assert sorted(contents(server, chat)) == ["1", "2"]


@pytest.mark.parametrize("id_", ['"a"', "0", "-1", "12345678901234567890", "1.5", "null", '""', '"ờ"'])
def test_response_ids_equal_request_ids(server: KhoServer, id_: str) -> None:
    body = f'{{"jsonrpc": "2.0", "method": "tool-server/tools/list", "id": {id_}}}'
    assert json.loads(server.post("/jsonrpc", body.encode()).data)["id"] == json.loads(id_)


@pytest.mark.parametrize(
    "body",
    [
        "1",
        '"x"',
        "null",
        "{}",
        '{"jsonrpc": "1.0", "method": "tool-server/tools/list", "id": 1}',
        '{"method": "tool-server/tools/list", "id": 1}',
        '{"jsonrpc": "2.0", "id": 1}',
        '{"jsonrpc": "2.0", "method": "tool-server/tools/list", "params": null, "id": 1}',
        '{"jsonrpc": "2.0", "method": "tool-server/tools/list", "id": true}',
        '{"jsonrpc": "2.0", "method": "tool-server/tools/list", "id": {}}',
        '{"jsonrpc": "2.0", "method": "tool-server/tools/list", "id": "\\ud800"}',
    ],
)
def test_malformed_requests(server: KhoServer, body: str) -> None:
    status, answer = send(server, body)
    assert (status, answer["error"]) == (200, INVALID)


def test_batch_limit_is_50(server: KhoServer) -> None:
    call = {"jsonrpc": "2.0", "method": "tool-server/tools/list", "id": 1}
    assert len(send(server, json.dumps([call] * 50))[1]) == 50
    assert send(server, json.dumps([call] * 51)) == (200, {"jsonrpc": "2.0", "error": INVALID, "id": None})


def test_too_many_positional_parameters(server: KhoServer, chat: str) -> None:
    body = {"jsonrpc": "2.0", "method": "memory-server/memory/clear", "params": [chat, 2], "id": 1}
    assert server.rpc(body)["error"]["code"] == -32602


def test_batch_response_over_the_size_limit_is_partial(server: KhoServer, chat: str) -> None:
    for _ in range(12):
        server.call(ADD, conversation_id=chat, role="user", content="x" * 256 * 1024)
    call = {"jsonrpc": "2.0", "method": GET, "params": [chat]}
    answers = server.rpc([call | {"id": id_} for id_ in range(3)])
    assert [answer["id"] for answer in answers] == [0, 1, 2]
    (whole,) = [answer["result"] for answer in answers if "result" in answer]
    assert len(whole["messages"]) == 12
    assert [answer["error"]["code"] for answer in answers if "error" in answer] == [413, 413]


CREATE = "agent-data/create_document"


def test_principal_beside_the_request_is_refused(server: KhoServer) -> None:
    params = {"document_id": uuid4().hex, "parent_id": "root", "content": {"body": "x"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": CREATE, "principal": {"tenant_id": "ten-x"}, "params": params}
    answer = server.rpc(call)
    assert (answer["id"], answer["error"]["code"]) == (1, -32600)
    assert "'principal'" in answer["error"]["data"]["details"]["reason"]
    assert server.error("agent-data/get_document", document_id=params["document_id"])["code"] == 404


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer nonsense"}])
def test_missing_credentials_are_a_jsonrpc_error(guarded: KhoServer, headers: dict[str, str]) -> None:
    def refused(body: Any) -> Any:
        response = guarded.post("/jsonrpc", json.dumps(body).encode(), **headers)
        assert (response.status, response.headers["www-authenticate"]) == (401, "Bearer")
        return json.loads(response.data)

    call = {"jsonrpc": "2.0", "method": "memory-server/memory/get_or_create", "params": {}}
    for answer, id_ in [
        (refused(call | {"id": "a"}), "a"),
        *zip(refused([call | {"id": 1}, call | {"id": 2}]), (1, 2), strict=True),
        (refused([call] * 51), None),
    ]:
        assert (answer["jsonrpc"], answer["id"], answer["error"]["code"]) == ("2.0", id_, 401)
        assert answer["error"]["data"]["code"] == "NOT_SIGNED_IN"
        assert answer["error"]["data"]["guidance"]


def test_oversize_request_is_a_jsonrpc_error(server: KhoServer) -> None:
    call = {"jsonrpc": "2.0", "id": 7, "method": GET, "params": {"conversation_id": "x" * 7_000_000}}
    response = server.post("/jsonrpc", json.dumps(call).encode())
    answer = json.loads(response.data)
    assert (response.status, answer["id"], answer["error"]["code"]) == (413, 7, 413)
    assert answer["error"]["data"]["code"] == "TOO_LARGE"
    assert json.loads(server.post("/jsonrpc", b"x" * 11_000_000).data)["error"]["code"] == 413
