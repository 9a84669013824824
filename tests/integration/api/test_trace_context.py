"""W3C trace context of a caller, in logs and in calls of functions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from endpoints import jsonrpc, mcp
from shared.platform.runtime import runtime
from shared.platform.telemetry import current, trace_header
from shared.rpc.observation import observe
from tests.helpers.log_records import log_records
from tests.helpers.mcp_events import MODERN, event, request_event

if TYPE_CHECKING:
    from pathlib import Path

TRACE, SPAN, OTHER_SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", "1111111111111111"
PARENT = f"00-{TRACE}-{SPAN}-01"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the trace contexts of the calls that reach functions."""
    contexts: list[Any] = []

    def take(_function: str, payload: bytes) -> bytes:
        contexts.append(json.loads(payload).get("traceparent"))
        return b'{"result": {"messages": []}}'

    monkeypatch.setattr(runtime, "functions", take)
    return contexts


def test_trace_of_a_header_reaches_each_function(sent: list[Any]) -> None:
    call = {"jsonrpc": "2.0", "method": "tool-server/tools/list", "id": 1}
    for body in (call, [call, call]):
        jsonrpc.handler(event(body, path="/jsonrpc", traceparent=PARENT), None)
    jsonrpc.handler(event(call, path="/jsonrpc"), None)
    assert sent == [PARENT] * 3 + [None]


@pytest.mark.parametrize("revision", [MODERN, "2025-11-25"])
def test_trace_of_a_message_takes_precedence(sent: list[Any], revision: str) -> None:
    meta = f"00-{TRACE}-{OTHER_SPAN}-01"
    params = {"name": "memory_get_context", "arguments": {"conversation_id": "c"}}
    asked = request_event("tools/call", revision, **params)
    body = json.loads(asked["body"])
    body["params"]["_meta"] = body["params"].get("_meta", {}) | {"traceparent": meta}
    headers = asked["headers"] | {"traceparent": PARENT}
    mcp.handler(asked | {"headers": headers, "body": json.dumps(body)}, None)
    assert sent == [meta]


@pytest.mark.parametrize(
    "invalid", [None, 7, "", "x", f"ff-{TRACE}-{SPAN}-01", f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01"]
)
def test_invalid_context_is_ignored(invalid: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-5759e988-bd862e3fe1be46a994272793")
    with observe("test/method", "0123456789ab", traceparent=invalid) as observation:
        assert observation.traceparent == ""
        assert trace_header() == "Root=1-5759e988-bd862e3fe1be46a994272793"


def test_calls_of_aws_belong_to_the_trace() -> None:
    with observe("test/method", "0123456789ab", traceparent=PARENT):
        assert trace_header() == f"Root=1-{TRACE[:8]}-{TRACE[8:]};Parent={SPAN};Sampled=1"
    assert current.get() is None


def test_log_records_name_the_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KHO_LOG_FILE", str(tmp_path / "kho.log"))
    with observe("test/method", "0123456789ab", traceparent=PARENT):
        pass
    (called,) = log_records(tmp_path / "kho.log", "called")
    assert (called["trace_id"], called["parent_id"]) == (TRACE, SPAN)
