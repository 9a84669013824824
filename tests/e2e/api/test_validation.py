"""Invalid input at every method: the right code, a message that names the field, and an unchanged store."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.data_folder import read_server_info
from infra.local.environment import prepare
from infra.local.template import FILE, load
from shared.rpc.catalogue import MethodEntry, catalogue
from tests.helpers.dynamodb import boto3_client
from tests.helpers.kho_server import KhoServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

METHODS = sorted(catalogue().methods)
MISSING = "MISSING_REQUIRED_FIELDS"
INTERNALS = ("Traceback", "pydantic", "botocore", "dynamo", ".py", str(FILE.parent), "site-packages")
GOOD_VALUES: dict[str, Any] = {
    "uri": "memory://conversation/chat_xxx",
    "role": "user",
    "action": "list",
    "name": "duckduckgo_search",
    "code": "482913",
    "version": "2.4.3",
    "url": "https://files.example.com/firmware.bin",
    "events": ["presence"],
    "arguments": {"query": "x"},
    "parent_id": "root",
    "new_parent_id": "root",
    "agent-data:content": {"body": "x"},
    "patch": {"content": {"body": "x"}},
    "edits": [{"append": "x"}],
    "expires_at": "2099-01-01T00:00:00Z",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KhoServer]:
    """Yield a server whose store has no other writers, not even in the background."""
    with KhoServer(tmp_path_factory.mktemp("refusing") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def stored(server: KhoServer, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], list[str]]:
    """Return a function that reads every item of every table."""
    prepare(load(), tmp_path_factory.mktemp("client"), auth="open")
    running = read_server_info(server.data)
    assert running
    client = boto3_client(running["store_url"])
    scans = client.get_paginator("scan")
    tables = client.list_tables()["TableNames"]

    def items() -> list[str]:
        return sorted(
            json.dumps(item, sort_keys=True, default=str)
            for table in tables
            for page in scans.paginate(TableName=table)
            for item in page["Items"]
        )

    return items


@pytest.fixture(scope="module")
def last_stored(stored: Callable[[], list[str]]) -> list[str]:
    """Return the items of every table when they were last read."""
    return stored()


@pytest.fixture(autouse=True)
def _store_unchanged(server: KhoServer, stored: Callable[[], list[str]], last_stored: list[str]) -> Iterator[None]:
    """Fail a test that changes the store. Its items are read only if its files have changed."""
    files = [server.data / "dynamodb.sqlite", server.data / "dynamodb.sqlite-wal"]
    written = [file.stat().st_mtime_ns for file in files]
    yield
    if [file.stat().st_mtime_ns for file in files] != written:
        before, last_stored[:] = last_stored.copy(), stored()
        assert last_stored == before


SAID_BY_SEED_004 = {
    ("research-agent/query_knowledge_base", "query"): (400, "QUERY_INVALID"),
    ("research-agent/augment_knowledge", "content"): (404, "COLLECTION_NOT_FOUND"),
}
"""These methods report excess length with a code of their contract, after checking that the collection exists."""


def good(entry: MethodEntry) -> dict[str, Any]:
    """Return valid parameters for the method."""
    return {
        name: GOOD_VALUES.get(f"{entry.server}:{name}", GOOD_VALUES.get(name, "chat_xxx"))
        for name in entry.params.get("required", [])
    }


def refused(server: KhoServer, method: str, params: Any, *fields: str) -> None:
    """Check that both endpoints reject the parameters and name the fields."""
    body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, "id": 1}).encode()
    rpc = json.loads(server.post("/jsonrpc", body).data)
    if method.startswith("recall-kit/"):
        direct = server.post(f"/{method}", json.dumps(params).encode())
        assert direct.status == 400
        assert json.loads(direct.data) == rpc["result"]
        refused_by_recall_kit(rpc["result"], *fields)
        return
    assert (rpc["error"]["code"], rpc["error"]["message"]) == (-32602, "Invalid params"), rpc
    assert sorted(each["field"] for each in rpc["error"]["data"]["details"]) == sorted(fields)
    direct = server.post(f"/{method}", json.dumps(params).encode())
    assert direct.status == 400
    error = json.loads(direct.data)["error"]
    assert error["code"] == "INVALID_PARAMS"
    assert all(field in error["message"] for field in fields)
    for text in (str(rpc), direct.data.decode()):
        assert not any(internal in text for internal in INTERNALS), text


def refused_by_recall_kit(said: Any, *fields: str) -> None:
    """Check recall-kit's error object, which is the same at each endpoint."""
    assert said["success"] is False
    error = said["error"]
    assert error["code"] in ("VALIDATION_ERROR", "INVALID_KEYWORDS", "INVALID_LIMIT", "INVALID_TITLE", MISSING)
    assert sorted(each["field"] for each in error["validation_errors"]) == sorted(fields)
    assert error["code"] == "VALIDATION_ERROR" or all(field in error["message"] for field in fields)
    assert not any(internal in str(said) for internal in INTERNALS), said


@pytest.mark.parametrize("method", METHODS)
def test_missing_parameter(server: KhoServer, method: str) -> None:
    entry = catalogue().methods[method]
    for name in entry.params.get("required", []):
        refused(server, method, {key: value for key, value in good(entry).items() if key != name}, name)


@pytest.mark.parametrize("method", METHODS)
def test_unknown_parameter(server: KhoServer, method: str) -> None:
    refused(server, method, good(catalogue().methods[method]) | {"surprise": 1}, "surprise")
    refused(server, method, good(catalogue().methods[method]) | {"\ud800": 1}, "\\ud800")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("wrong", [{"a": 1}, 7.5, True, [None]])
def test_parameter_of_wrong_type(server: KhoServer, method: str, wrong: Any) -> None:
    entry = catalogue().methods[method]
    for name in entry.fields:
        schema = entry.params["properties"][name]
        kinds = [schema, *schema.get("anyOf", [])]
        types = {"object" if "$ref" in each else each.get("type") for each in kinds}
        if (isinstance(wrong, dict) and "object" in types) or (isinstance(wrong, bool) and "boolean" in types):
            continue
        if isinstance(wrong, list) and "array" in types:
            continue  # its items are tested with their own class
        refused(server, method, good(entry) | {name: wrong}, name)


@pytest.mark.parametrize("method", METHODS)
def test_invalid_or_too_long_text(server: KhoServer, method: str) -> None:
    entry = catalogue().methods[method]
    for name in entry.fields:
        schema = entry.params["properties"][name]
        texts = [each for each in [schema, *schema.get("anyOf", [])] if each.get("type") == "string"]
        if not texts:
            continue
        refused(server, method, good(entry) | {name: "a\ud800b"}, name)
        if "enum" in texts[0]:
            refused(server, method, good(entry) | {name: "missing"}, name)
        elif (method, name) in SAID_BY_SEED_004:
            long = good(entry) | {name: "x" * (texts[0]["maxLength"] + 1)}
            answer = server.post(f"/{method}", json.dumps(long).encode())
            assert (answer.status, json.loads(answer.data)["error"]["code"]) == SAID_BY_SEED_004[method, name]
        else:  # a text of a fixed length has a pattern instead
            refused(server, method, good(entry) | {name: "x" * (texts[0].get("maxLength", 1024) + 1)}, name)


def test_content_limit_is_in_bytes(server: KhoServer) -> None:
    message = {"conversation_id": "chat_xxx", "role": "user", "content": "ờ" * (256 * 1024 // 3 + 1)}
    refused(server, "memory-server/memory/add_message", message, "content")
    refused(server, "memory-server/memory/add_message", message | {"content": ""}, "content")


@pytest.mark.parametrize("conversation_id", ["", " ", "a b", "a\x00b", "a\nb", "\x7f", "x" * 201])
def test_invalid_conversation_ids(server: KhoServer, conversation_id: str) -> None:
    refused(server, "memory-server/memory/get_context", {"conversation_id": conversation_id}, "conversation_id")


@pytest.mark.parametrize("value", [0, -1, 2**31, 10**40])
def test_numbers_out_of_bounds(server: KhoServer, value: int) -> None:
    params = {"conversation_id": "chat_xxx", "max_messages": value}
    refused(server, "memory-server/memory/get_context", params, "max_messages")


@pytest.mark.parametrize("params", [[1], "x", 1, None])
def test_params_that_are_not_an_object(server: KhoServer, params: Any) -> None:
    response = server.post("/memory-server/memory/clear", json.dumps(params).encode())
    assert response.status == 400
    assert json.loads(response.data)["error"]["code"] == "INVALID_PARAMS"


@pytest.mark.parametrize(
    "body",
    [
        b" ",
        b"{",
        b'{"conversation_id": "a"} x',
        b'{"conversation_id": NaN}',
        b'{"conversation_id": 1e999}',
        b'{"conversation_id": ' + b"9" * 5000 + b"}",
        b'{"conversation_id": "\xff"}',
        b'\xef\xbb\xbf{"conversation_id": "a"}',
        '{"conversation_id": "a"}'.encode("utf-16"),
        b'{"x": ' + b"[" * 64 + b"]" * 64 + b"}",
        b"[" * 200_000,
        b'{"conversation_id": "a\x01"}',
    ],
)
@pytest.mark.parametrize("path", ["/jsonrpc", "/memory-server/memory/clear"])
def test_invalid_json_body(server: KhoServer, path: str, body: bytes) -> None:
    response = server.post(path, body)
    answer = json.loads(response.data)
    if path == "/jsonrpc":
        assert (response.status, answer["error"]["code"], answer["id"]) == (200, -32700, None)
    else:
        assert (response.status, answer["error"]["code"]) == (400, "PARSE_ERROR")
    assert not any(internal in response.data.decode() for internal in INTERNALS)


def test_empty_body_of_json_has_no_parameters(server: KhoServer) -> None:
    """Clients that generators write send the type without a body. JSON-RPC still needs a message."""
    assert server.post("/agent-data/list_children", b"").status == 200
    missing = server.post("/memory-server/memory/clear", b"")
    assert (missing.status, missing.json()["error"]["details"][0]["field"]) == (400, "conversation_id")
    assert server.post("/agent-data/list_children", b"", "text/plain").status == 400
    assert server.post("/jsonrpc", b"").json()["error"]["code"] == -32700


def test_json_depth_limit_is_64(server: KhoServer) -> None:
    body = b'{"x": ' + b"[" * 63 + b"]" * 63 + b"}"
    assert json.loads(server.post("/memory-server/memory/clear", body).data)["error"]["code"] == "INVALID_PARAMS"
    body = b'{"x": ' + b"[" * 64 + b"]" * 64 + b"}"
    error = json.loads(server.post("/memory-server/memory/clear", body).data)["error"]
    assert (error["code"], error["details"]) == ("PARSE_ERROR", {"reason": "nested deeper than 64 levels"})


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "application/xml", None])
def test_simple_cors_content_types_are_rejected(server: KhoServer, content_type: str | None) -> None:
    body = b'{"conversation_id": "chat_xxx"}'
    response = server.post("/memory-server/memory/get_or_create", body, content_type)
    error = json.loads(response.data)["error"]
    assert (response.status, error["code"], error["details"][0]["field"]) == (400, "INVALID_REQUEST", "Content-Type")
    rpc = b'{"jsonrpc": "2.0", "method": "memory-server/memory/get_or_create", "params": ["chat_xxx"], "id": 1}'
    answer = json.loads(server.post("/jsonrpc", rpc, content_type).data)
    assert (answer["error"]["code"], answer["id"]) == (-32600, None)


def test_foreign_host_header_is_rejected_without_keys(server: KhoServer) -> None:
    refused = server.get("/health", host="attacker.example:8001")
    assert (refused.status, json.loads(refused.data)["error"]["code"]) == (403, "NOT_ALLOWED")
    assert refused.headers["x-correlation-id"]
    assert server.get("/health", host="localhost:8001").status == 200


@pytest.mark.parametrize(("megabytes", "status"), [(5, 400), (7, 413), (11, 413)])
def test_large_request_bodies(server: KhoServer, megabytes: int, status: int) -> None:
    body = json.dumps({"conversation_id": "x" * megabytes * 1024 * 1024}).encode()
    assert server.post("/memory-server/memory/clear", body).status == status


def test_number_of_reported_problems_is_limited(server: KhoServer) -> None:
    fields = {f"k{number}": 1 for number in range(200_000)}
    response = server.post("/memory-server/memory/clear", json.dumps(fields).encode())
    error = json.loads(response.data)["error"]
    assert (response.status, error["code"], len(error["details"])) == (400, "INVALID_PARAMS", 1)
    assert "has 200000 unknown fields; the first: k0, k1" in error["details"][0]["message"]
    documents = {"collection": "x", "documents": [{}] * 100}
    response = server.post("/research-agent/ingest_documents", json.dumps(documents).encode())
    error = json.loads(response.data)["error"]
    assert (response.status, error["code"], len(error["details"])) == (400, "INVALID_PARAMS", 51)
    assert "more problems" in error["details"][-1]["message"]
    long_name = server.post("/memory-server/memory/clear", json.dumps({"x" * 3_000_000: 1}).encode())
    assert (long_name.status, len(long_name.data) < 10_000) == (400, True)


def test_truncated_request_has_no_effect(server: KhoServer) -> None:
    host, port = server.address.removeprefix("http://").split(":")
    body = b'{"conversation_id": "cut", "role": "user", "content": "x"}'
    head = f"POST /memory-server/memory/add_message HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + b"Content-Length: 5000\r\n\r\n" + body)
    assert server.error("memory-server/memory/get_summary", conversation_id="cut")["code"] == -32001


@pytest.mark.parametrize(
    "uri", ["memory://conversation/", "memory://conversation/a b", "other://x", "memory://conversation/%00", "%"]
)
def test_unknown_resources(server: KhoServer, uri: str) -> None:
    error = server.error("memory-server/resources/read", uri=uri)
    assert (error["code"], error["data"]["code"]) == (-32001, "NOT_FOUND")


def gateway_error(server: KhoServer, method: str, path: str, body: bytes = b"") -> tuple[int, Any, Any]:
    """Return status, body and headers of a request that reaches no function."""
    headers = {"content-type": "application/json", "x-correlation-id": "refused-by-the-gateway"}
    response = server.http.request(method, server.address + path, body=body, headers=headers)
    assert response.headers["x-correlation-id"] == "refused-by-the-gateway"
    return response.status, json.loads(response.data), response.headers


@pytest.mark.parametrize(
    ("path", "similar"),
    [
        ("/nowhere", ""),
        ("/memory-server/memory/clear/", "/memory-server/memory/clear"),
        ("/memory-server/memory/clean", "/memory-server/memory/clear"),
    ],
)
def test_unknown_endpoints_name_similar_ones(server: KhoServer, path: str, similar: str) -> None:
    status, body, _ = gateway_error(server, "POST", path)
    error = body["error"]
    assert (status, error["code"], error["details"]) == (404, "METHOD_NOT_FOUND", {"path": path})
    assert path in error["message"]
    assert (f"Did you mean {similar}?" in error["guidance"]) == bool(similar)
    assert "/openapi.json" in error["guidance"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("PUT", "/health", "GET"), ("GET", "/memory-server/memory/clear", "POST"), ("DELETE", "/mcp", "POST")],
)
def test_wrong_http_methods_are_told_the_right_one(server: KhoServer, method: str, path: str, allowed: str) -> None:
    status, body, headers = gateway_error(server, method, path)
    error = body["error"]
    assert (status, error["code"], headers["allow"]) == (405, "METHOD_NOT_ALLOWED", allowed)
    assert allowed in error["message"]
    assert error["guidance"]


def test_gateway_refuses_in_each_dialect(server: KhoServer) -> None:
    status, body, headers = gateway_error(server, "GET", "/jsonrpc")
    assert (status, body["error"]["code"], body["id"], headers["allow"]) == (405, -32601, None, "POST")
    status, body, _ = gateway_error(server, "POST", "/agent-data/nope", b'{"request_id": "r-1"}')
    assert (status, body["error"]["code"], body["request_id"]) == (404, "METHOD_NOT_FOUND", "r-1")
    status, body, _ = gateway_error(server, "POST", "/actions", b'{"request_id": "' + b"x" * 7_000_000 + b'"}')
    assert (status, body["error"]["code"]) == (413, "TOO_LARGE")
    status, body, _ = gateway_error(server, "POST", "/recall-kit/query_experiences", b"x" * 11_000_000)
    assert (status, body["success"], body["error"]["code"]) == (413, False, "TOO_LARGE")
    status, body, _ = gateway_error(server, "POST", "/recall-kit/nope")
    assert (status, body["success"], body["error"]["code"]) == (404, False, "METHOD_NOT_FOUND")
