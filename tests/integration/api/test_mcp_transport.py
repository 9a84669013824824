"""Requests that the MCP endpoint accepts and rejects: hosts, origins, invalid messages, many concurrent calls."""

from __future__ import annotations

import gc
import json
import logging
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from mcp_types import CallToolRequestParams

from api.mcp_server import server_for_catalog
from api.mcp_transport import McpTransport
from endpoints import mcp
from shared.platform.config import config
from shared.platform.runtime import runtime
from shared.platform.version import VERSION
from shared.rpc.mcp_catalog import mcp_catalog
from tests.helpers.mcp_events import (
    HANDSHAKE,
    MODERN,
    REVISIONS,
    event,
    in_process_mcp_server,
    initialize_event,
    request_event,
    response_message,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


INTERNALS = ("Traceback", "pydantic", "botocore", "Error:", ".py", "site-packages")


@pytest.fixture(scope="module")
def transport(store: str) -> Iterator[McpTransport]:
    """Yield the endpoint's transport, with its methods in this process."""
    with in_process_mcp_server() as made:
        yield made


@pytest.mark.parametrize("revision", ["2025-03-26", "2024-11-05"])
def test_older_revisions_are_served(transport: McpTransport, revision: str) -> None:
    started = response_message(mcp.handle_message(initialize_event(revision), transport))["result"]
    assert started["protocolVersion"] == revision
    assert started["capabilities"].keys() >= {"tools", "resources", "prompts"}
    listed = response_message(mcp.handle_message(request_event("tools/list", revision), transport))["result"]["tools"]
    assert {each["name"] for each in listed} == {each.name for each in mcp_catalog().tools}
    call = request_event("tools/call", revision, name="memory_get_context", arguments={"conversation_id": "nowhere"})
    failed = response_message(mcp.handle_message(call, transport))["result"]
    assert failed["isError"]
    assert failed["content"][0]["text"].startswith("NOT_FOUND: ")


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_handshake_negotiates_the_requested_revision(transport: McpTransport, revision: str) -> None:
    result = response_message(mcp.handle_message(initialize_event(revision), transport))["result"]
    assert result["protocolVersion"] == revision
    assert result["serverInfo"] == {"name": "kho", "title": "Kho", "version": VERSION}
    assert set(result["capabilities"]) == {"tools", "resources", "prompts", "completions"}
    assert (
        mcp.handle_message(event({"jsonrpc": "2.0", "method": "notifications/initialized"}), transport)["statusCode"]
        == 202
    )


@pytest.mark.parametrize("revision", REVISIONS)
def test_crash_details_are_not_exposed(transport: McpTransport, revision: str) -> None:
    server = server_for_catalog(mcp_catalog())

    async def crash(_context: Any, _params: Any) -> dict[str, Any]:
        raise RuntimeError("hunter2")

    server.add_request_handler("tools/call", CallToolRequestParams, crash)
    crashing = McpTransport(server)
    answer = mcp.handle_message(request_event("tools/call", revision, name="x"), crashing)
    crashing.close()
    error = response_message(answer)["error"]
    assert error["code"] == -32603
    assert error["message"] == "Internal error. Report the correlation id 0123456789ab to the operator."
    assert error["data"]["details"] == {"correlation_id": "0123456789ab"}
    assert "hunter2" not in answer["body"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("", -32700),
        ("{", -32700),
        ("[" * 70 + "]" * 70, -32700),
        ("[]", -32600),
        ('[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600),
        ("1", -32600),
        ('{"id": 1, "method": "ping"}', -32600),
        ('{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600),
        ('{"jsonrpc": "2.0", "id": 1, "method": 1}', -32600),
        ('{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "\\ud800"}}', -32602),
        ('{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 1}}', -32602),
        ('{"jsonrpc": "2.0", "id": 1, "method": "no/such"}', -32601),
        ('{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"_meta": []}}', -32602),
    ],
)
@pytest.mark.parametrize("revision", REVISIONS)
def test_invalid_messages(transport: McpTransport, body: str, code: int, revision: str) -> None:
    answer = mcp.handle_message(event(body, mcp_protocol_version=revision, mcp_method="tools/call"), transport)
    # In the newest revision, the missing envelope is the first error.
    expected = {code, -32602, -32020} if revision == MODERN and code in (-32601, -32602) else {code}
    assert response_message(answer)["error"]["code"] in expected
    assert not any(internal in answer["body"] for internal in INTERNALS)


def described(answer: dict[str, Any]) -> Any:
    """Return the error of an answer, whose data has the contract's members."""
    error = response_message(answer)["error"]
    assert {"code", "details", "guidance"} <= set(error["data"])
    assert error["data"]["guidance"]
    return error


@pytest.mark.parametrize("revision", REVISIONS)
def test_unknown_mcp_methods_have_guidance(transport: McpTransport, revision: str) -> None:
    error = described(mcp.handle_message(request_event("foo/bar", revision), transport))
    assert (error["code"], error["data"]["code"]) == (-32601, "METHOD_NOT_FOUND")
    assert error["data"]["details"] == {"reason": "foo/bar"}


def test_errors_of_the_sdk_have_guidance(transport: McpTransport) -> None:
    without_envelope = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {}}
    error = described(mcp.handle_message(event(without_envelope, mcp_protocol_version=MODERN), transport))
    assert (error["code"], error["data"]["code"]) == (-32602, "INVALID_PARAMS")
    contradicting = request_event("tools/list", MODERN)
    contradicting["headers"]["mcp-method"] = "prompts/list"
    error = described(mcp.handle_message(contradicting, transport))
    assert error["data"]["code"] == "HEADER_MISMATCH"
    accepts_images = request_event("tools/list", "2025-11-25")
    accepts_images["headers"]["accept"] = "image/png"
    answer = mcp.handle_message(accepts_images, transport)
    assert (answer["statusCode"], described(answer)["data"]["code"]) == (406, "INVALID_REQUEST")


def test_unknown_protocol_version_is_told_plainly(transport: McpTransport) -> None:
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {}}
    answer = mcp.handle_message(event(call, mcp_protocol_version="1999-01-01"), transport)
    error = described(answer)
    assert (answer["statusCode"], error["code"], error["data"]["code"]) == (400, -32022, "UNSUPPORTED_PROTOCOL_VERSION")
    supported = "2026-07-28, 2025-11-25, 2025-06-18"
    assert error["message"] == f"The protocol version '1999-01-01' is not supported. Supported: {supported}."
    assert error["data"]["supported"] == error["data"]["details"]["supported"] == supported.split(", ")
    assert response_message(answer)["id"] == 7


def test_discover_lists_three_revisions(transport: McpTransport) -> None:
    result = response_message(mcp.handle_message(request_event("server/discover", MODERN), transport))["result"]
    assert result["supportedVersions"] == list(REVISIONS)
    assert set(result["capabilities"]) == {"tools", "resources", "prompts", "completions"}


@pytest.mark.parametrize("revision", REVISIONS)
def test_principal_beside_an_mcp_message_is_refused(transport: McpTransport, revision: str) -> None:
    call = request_event("tools/list", revision)
    call["body"] = json.dumps(json.loads(call["body"]) | {"principal": {"tenant_id": "ten-x"}})
    error = described(mcp.handle_message(call, transport))
    assert error["code"] == -32600
    assert "'principal'" in error["data"]["details"]["reason"]


def test_only_json_content_type_is_accepted(transport: McpTransport) -> None:
    answer = mcp.handle_message(event("{}", content_type="text/plain"), transport)
    assert (answer["statusCode"], response_message(answer)["error"]["code"]) == (400, -32600)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_streams_and_sessions_are_not_supported(transport: McpTransport, method: str) -> None:
    answer = mcp.handle_message(event("", method), transport)
    assert (answer["statusCode"], answer["headers"]["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "127.0.0.1:8001"}, 200),
        ({"host": "[::1]:8001"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "evil.example:8001"}, 403),
        ({"host": "localhost.evil.example"}, 403),
        ({"host": ""}, 403),
        ({"origin": "http://localhost:8001"}, 200),
        ({"origin": "http://localhost:6274"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "https://localhost.evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://["}, 403),
        ({"x_forwarded_port": "no number"}, 200),
    ],
)
def test_foreign_origins_are_rejected(transport: McpTransport, headers: dict[str, str], status: int) -> None:
    initialize = json.loads(initialize_event("2025-11-25")["body"])
    assert mcp.handle_message(event(initialize, **headers), transport)["statusCode"] == status


def test_pages_of_configured_origins_may_call(transport: McpTransport, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KHO_CORS_ORIGINS", "https://app.example.com")
    config.cache_clear()
    initialize = json.loads(initialize_event("2025-11-25")["body"])
    for origin, status in (("https://app.example.com", 200), ("https://evil.example", 403)):
        assert mcp.handle_message(event(initialize, origin=origin), transport)["statusCode"] == status
    monkeypatch.undo()
    config.cache_clear()


@pytest.fixture
def _without_logs() -> Iterator[None]:
    """Disable logging: the test runner keeps every line."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures("_without_logs")
def test_many_events_then_fifty_concurrent(transport: McpTransport) -> None:
    """All are answered, and none leaks memory."""
    alone = McpTransport(server_for_catalog(mcp_catalog()))
    events = [initialize_event("2025-11-25"), *(request_event("tools/list", revision) for revision in REVISIONS)]

    def answered(number: int) -> bool:
        answer = mcp.handle_message(events[number % len(events)], alone)
        return answer["statusCode"] == 200 and "result" in response_message(answer)

    tracemalloc.start()
    assert all(answered(number) for number in range(30))
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    assert all(answered(number) for number in range(40))
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 20_000
    assert alone.capacity == 1
    with ThreadPoolExecutor(50) as pool:
        assert all(pool.map(answered, range(50)))
    assert alone.capacity <= 50
    alone.close()


@pytest.mark.parametrize("revision", REVISIONS)
def test_too_large_answer_becomes_an_error(
    transport: McpTransport, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A result that fits into the function's answer, but not with its escapes into the endpoint's, is refused."""
    answers: list[bytes] = []

    def large(_function: str, _payload: bytes) -> bytes:
        answers.append(b'{"result": {"contents": [{"uri": "memory://c", "text": "%s"}]}}' % (b'\\"' * 2_000_000))
        return answers[-1]

    monkeypatch.setattr(runtime, "functions", large)
    arguments = {"conversation_id": "c"}
    call = request_event("tools/call", revision, name="memory_get_all_messages", arguments=arguments)
    response = mcp.handle_message(call, transport)
    message = response_message(response)
    assert message["result"]["isError"] is True
    assert message["result"]["structuredContent"]["code"] == "TOO_LARGE"
    read = request_event("resources/read", revision, uri="memory://conversation/c")
    assert response_message(mcp.handle_message(read, transport))["error"]["data"]["code"] == "TOO_LARGE"
    assert len(answers) == 2  # neither method was called again
