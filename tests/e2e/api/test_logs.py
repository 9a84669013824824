"""Logs record each call but never its content, and every method has metrics."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from shared.rpc.caller import LOCAL
from shared.rpc.catalogue import catalogue
from tests.e2e.tenant_isolation.case import OWNER
from tests.e2e.tenant_isolation.conversations import MEMORY
from tests.e2e.tenant_isolation.documents import AGENT
from tests.e2e.tenant_isolation.methods import CASES
from tests.helpers.api_client import ApiClient, make_key
from tests.helpers.kho_server import KhoServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WORDS = ["secret", "kohlrabi"]
"""A word in every message, summary, document, question and reason of `CASES`, and in no name of ours."""


@pytest.fixture(scope="module")
def talkative(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KhoServer]:
    """Yield a server at the most detailed log level."""
    data = tmp_path_factory.mktemp("talkative") / "data"
    with KhoServer(data, "--auth", "required", environment={"POWERTOOLS_LOG_LEVEL": "DEBUG"}) as running:
        yield running


def logged(server: KhoServer) -> str:
    """Return the server's complete output apart from the store."""
    logs = [file.read_text(errors="replace") for file in server.data.glob("*.log*")]
    return "\n".join([*logs, server.printed()])


def revealed(server: KhoServer, words: list[str]) -> list[str]:
    return [line[:500] for line in logged(server).splitlines() for word in words if word.lower() in line.lower()]


def test_request_content_is_not_logged(talkative: KhoServer) -> None:
    key = make_key(talkative.data, OWNER, "admin")["key"]
    client = ApiClient(talkative, key)
    for method, cases in CASES.items():
        id_ = uuid4().hex
        created_id = cases[0].make(client, id_) or id_
        cases[0].prepare(client, id_)
        for ask in (client.direct, client.jsonrpc):
            ask(method, **cases[0].params(created_id))
    assert '"method":"memory-server/memory/add_message"' in logged(talkative)
    assert revealed(talkative, [*WORDS, key]) == []


def test_rejected_content_is_not_logged(talkative: KhoServer, tmp_path: Path) -> None:
    key = make_key(talkative.data, OWNER, "reader")["key"]
    client, unknown = ApiClient(talkative, key), ApiClient(talkative, f"{key[:-4]}0000")
    content = {"conversation_id": "chat", "role": "secret", "content": "secret", "secret": "secret"}
    for caller in (client, unknown):
        for ask in (caller.direct, caller.jsonrpc):
            ask(f"{MEMORY}/add_message", **content)
        caller.action(f"{AGENT}/create_document", document_id="secret", content={"body": 5, "secret": ["secret"]})
        caller.act({"action": "secret", "request_id": "secret", "payload": {"secret": "secret"}})
    for path in (f"/{MEMORY}/add_message", "/jsonrpc", "/actions", "/mcp"):
        for body in (b'{"secret": secret}', b"secret \xff", json.dumps([content]).encode()):
            talkative.post(path, body, **client.headers)
    called = {"name": "memory_add_message", "arguments": content}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called}
    accepting = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
    talkative.post("/mcp", json.dumps(message).encode(), **accepting, **client.headers)
    talkative.get("/nowhere?secret=secret")
    assert '"outcome":"INVALID_PARAMS"' in logged(talkative)
    assert revealed(talkative, ["secret", key, unknown.credential or ""]) == []


@pytest.mark.parametrize("method", sorted(catalogue().methods))
def test_each_method_emits_count_duration_and_error_metrics(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POWERTOOLS_METRICS_DISABLED", raising=False)
    monkeypatch.setenv("KHO_METHOD_METRICS", "true")
    handler = importlib.import_module(catalogue().methods[method].function.replace("-", ".")).handler
    call: dict[str, Any] = {"method": method, "params": {"\0": 1}, "caller": LOCAL.record(), "correlation_id": "1"}
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        assert handler(call, None)["error"]["code"]
    metrics = [json.loads(line) for line in stream.getvalue().splitlines() if '"_aws"' in line]
    assert [each["method"] for each in metrics] == [method]
    assert (metrics[0]["Calls"], metrics[0]["Errors"]) == ([1.0], [1.0])
    assert metrics[0]["Duration"][0] > 0
    assert metrics[0]["service"] == method.partition("/")[0]
