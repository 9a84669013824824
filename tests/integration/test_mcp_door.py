"""What the MCP door lets in, and how it holds: hosts and origins, messages that are none, many at once."""

from __future__ import annotations

import gc
import json
import logging
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from mcp_types import CallToolRequestParams

from doors import mcp
from doors.mcp_server import VERSION, server_of
from doors.mcp_transport import Transport
from shared.rpc.offers import offers
from tests.mcp import HANDSHAKE, MODERN, REVISIONS, asking, behind_the_door, event, initializing, said

if TYPE_CHECKING:
    from collections.abc import Iterator


INTERNALS = ("Traceback", "pydantic", "botocore", "Error:", ".py", "site-packages")


@pytest.fixture(scope="module")
def transport(store: str) -> Iterator[Transport]:
    """The door's own, with the methods behind it called as they are on one machine."""
    with behind_the_door() as made:
        yield made


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_handshake_settles_on_the_revision_that_was_asked_for(transport: Transport, revision: str) -> None:
    result = said(mcp.answer(initializing(revision), transport))["result"]
    assert result["protocolVersion"] == revision
    assert result["serverInfo"] == {"name": "kho", "title": "Kho", "version": VERSION}
    assert set(result["capabilities"]) == {"tools", "resources", "prompts", "completions"}
    assert mcp.answer(event({"jsonrpc": "2.0", "method": "notifications/initialized"}), transport)["statusCode"] == 202


@pytest.mark.parametrize("revision", REVISIONS)
def test_nothing_of_a_crash_leaves(transport: Transport, revision: str) -> None:
    server = server_of(offers())

    async def crash(_context: Any, _params: Any) -> dict[str, Any]:
        raise RuntimeError("hunter2")

    server.add_request_handler("tools/call", CallToolRequestParams, crash)
    crashing = Transport(server)
    answer = mcp.answer(asking("tools/call", revision, name="x"), crashing)
    crashing.close()
    error = said(answer)["error"]
    assert (error["code"], error["message"]) == (-32603, "Internal error")
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
def test_what_is_no_message(transport: Transport, body: str, code: int, revision: str) -> None:
    answer = mcp.answer(event(body, mcp_protocol_version=revision, mcp_method="tools/call"), transport)
    # Without the envelope of the newest revision, that is what is wrong first.
    expected = {code, -32602, -32020} if revision == MODERN and code in (-32601, -32602) else {code}
    assert said(answer)["error"]["code"] in expected
    assert not any(internal in answer["body"] for internal in INTERNALS)


def test_only_json_is_read(transport: Transport) -> None:
    answer = mcp.answer(event("{}", content_type="text/plain"), transport)
    assert (answer["statusCode"], said(answer)["error"]["code"]) == (400, -32600)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_there_are_no_streams_and_sessions(transport: Transport, method: str) -> None:
    answer = mcp.answer(event("", method), transport)
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
def test_pages_elsewhere_are_refused(transport: Transport, headers: dict[str, str], status: int) -> None:
    initialize = json.loads(initializing("2025-11-25")["body"])
    assert mcp.answer(event(initialize, **headers), transport)["statusCode"] == status


@pytest.fixture
def _without_logs() -> Iterator[None]:
    """Let nothing be logged: the test's own runner keeps every line."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures("_without_logs")
def test_many_events_then_fifty_at_once(transport: Transport) -> None:
    """All are answered, and none leaves memory behind."""
    alone = Transport(server_of(offers()))
    asked = [initializing("2025-11-25"), *(asking("tools/list", revision) for revision in REVISIONS)]

    def answered(number: int) -> bool:
        answer = mcp.answer(asked[number % len(asked)], alone)
        return answer["statusCode"] == 200 and "result" in said(answer)

    tracemalloc.start()
    assert all(answered(number) for number in range(30))
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    assert all(answered(number) for number in range(40))
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 20_000
    assert alone.seats == 1
    with ThreadPoolExecutor(50) as pool:
        assert all(pool.map(answered, range(50)))
    assert alone.seats <= 50
    alone.close()
