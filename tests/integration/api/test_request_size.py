"""Large and hostile requests: small bodies without credentials, and errors whose cost does not grow with the body."""

from __future__ import annotations

import json
import tracemalloc
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from agent_data import create_document, query_knowledge
from endpoints import actions, jsonrpc, mcp, recall_kit_mcp
from memory_server import get_or_create_summary
from recall_kit import query_experiences
from shared.platform.config import config
from shared.platform.runtime import runtime
from tests.helpers.mcp_events import HANDSHAKE, MODERN, REVISIONS, event, request_event, response_message
from tests.helpers.size import FULL_SIZE, sized

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Handler = Callable[[Any, Any], Any]

FIELDS = 30_000
MAX_COST = 125 * FIELDS
"""50 MB for a body of 6 MB, which holds 400,000 fields."""
LIMIT = 256 * 1024
QUERY = "recall-kit/query_experiences"
SERVED = REVISIONS if FULL_SIZE else (MODERN, HANDSHAKE[0])
"""Revisions that begin with a handshake run the same code."""


@pytest.fixture
def invoked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the functions that are invoked."""
    functions: list[str] = []

    def record(function: str, _payload: bytes) -> bytes:
        functions.append(function)
        return b'{"result": {}}'

    monkeypatch.setattr(runtime, "functions", record)
    return functions


def answer_and_cost(handler: Handler, asked: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """Return the handler's answer, and the bytes that it takes at most beyond the parsed body."""
    handler(asked | {"body": "{}"}, None)  # imports
    peaks = []
    runs: tuple[Callable[[], Any], ...] = (lambda: json.loads(asked["body"].encode()), lambda: handler(asked, None))
    for run in runs:
        tracemalloc.start()
        result = run()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    return result, peaks[1] - peaks[0]


def rpc(method: str, params: Any) -> dict[str, Any]:
    return event({"jsonrpc": "2.0", "method": method, "params": params, "id": 1}, path="/jsonrpc")


def unknown() -> dict[str, int]:
    return {f"u{number}": number for number in range(FIELDS)}


def deep(*elements: Any) -> dict[str, Any]:
    """Return metadata with many elements at depth 60."""
    return {"metadata": json.loads('{"a":' * 60 + json.dumps([0] * FIELDS + list(elements)) + "}" * 60)}


def tool_call(revision: str) -> dict[str, Any]:
    return request_event("tools/call", revision, name="query_experiences", arguments=unknown())


CASES: dict[str, tuple[Handler, Callable[[], dict[str, Any]]]] = {
    "direct": (query_experiences.handler, lambda: event({"keywords": "x"} | unknown(), path=f"/{QUERY}")),
    "jsonrpc": (jsonrpc.handler, lambda: rpc(QUERY, {"keywords": "x"} | unknown())),
    "actions": (actions.handler, lambda: event({"action": "create_document", "payload": unknown()}, path="/actions")),
    "actions envelope": (actions.handler, lambda: event({"action": "x", "payload": {}} | unknown(), path="/actions")),
    **{
        f"{name} {revision}": (handler, partial(tool_call, revision))
        for name, handler in (("mcp", mcp.handler), ("mcp/recall-kit", recall_kit_mcp.handler))
        for revision in SERVED
    },
    "mcp params": (mcp.handler, lambda: request_event("tools/list", REVISIONS[0], **unknown())),
}


@pytest.mark.parametrize("case", CASES)
def test_many_unknown_fields_are_refused_by_name_at_a_bounded_cost(invoked: list[str], case: str) -> None:
    handler, ask = CASES[case]
    answer, cost = answer_and_cost(handler, ask())
    assert cost < MAX_COST
    assert f"has {FIELDS} unknown fields; the first: u0, u1, u2," in answer["body"]
    assert "u19" in answer["body"]
    assert "u20" not in answer["body"]
    assert len(answer["body"]) < 8192
    assert not invoked


NESTED: dict[str, tuple[Handler, Callable[[], Any], str]] = {
    "unknown nested": (
        query_knowledge.handler,
        lambda: {"query": "x", "filters": unknown()},
        f"filters: has {FIELDS} unknown",
    ),
    "wrong elements": (
        query_knowledge.handler,
        lambda: {"query": "x", "filters": {"tags": [1] * 10 * FIELDS}},
        "filters.tags",
    ),
    "many brackets": (
        query_knowledge.handler,
        lambda: {"query": "x", "filters": {"tags": [json.loads("[" * 50 + "]" * 50)] * (FIELDS // 8)}},
        "filters.tags",
    ),
    "escaped emoji": (
        query_knowledge.handler,
        lambda: {"query": "x", "filters": {"tags": ["😀"] * FIELDS + [1]}},
        "filters.tags",
    ),
    "wide metadata": (
        create_document.handler,
        lambda: {"document_id": "a", "parent_id": "root", "metadata": unknown(), "content": {}},
        "metadata",
    ),
    "wrong messages": (
        get_or_create_summary.handler,
        lambda: {"conversation_id": "x", "old_messages": [{}] * FIELDS},
        "old_messages.0.role",
    ),
    "deep metadata": (create_document.handler, deep, "document_id"),
    "surrogate in the depth": (create_document.handler, lambda: deep("\ud800"), "surrogate"),
}


@pytest.mark.parametrize("case", NESTED)
def test_large_nested_values_are_refused_at_a_bounded_cost(case: str) -> None:
    handler, body, reason = NESTED[case]
    answer, cost = answer_and_cost(handler, event(body(), path="/direct"))
    assert cost < MAX_COST
    assert answer["statusCode"] == 400
    assert reason in answer["body"]
    assert len(answer["body"]) < 32_768


VALUES: dict[str, str] = {
    "arrays": "[" + ",".join(["[]"] * sized(110_000, full=700_000)) + "]",
    "nested arrays": "[" + ",".join(["[" * 50 + "]" * 50] * sized(2_200, full=20_000)) + "]",
    "numbers": "[[" + "],[".join([",".join(["1e9"] * sized(27_500, full=90_000))] * 4) + "]]",
    "long numbers": "[" + ",".join(["9" * 4000] * 1_000) + "]",
    "fields": "{" + ",".join(f'"u{number}":0' for number in range(sized(110_000, full=200_000))) + "}",
}
"""At full size, bodies near the limit of a request."""
ACTION = '{"action": "create_document", "payload": {"metadata": {"a": %s}}}'
RPC = '{"jsonrpc": "2.0", "id": 1, "method": "agent-data/create_document", "params": {"metadata": {"a": %s}}}'


def many_values(endpoint: str, values: str) -> tuple[Handler, dict[str, Any]]:
    """Return an endpoint, and a request with these values in a known field."""
    if endpoint == "jsonrpc":
        return jsonrpc.handler, event(RPC % values, path="/jsonrpc")
    if endpoint == "actions":
        return actions.handler, event(ACTION % values, path="/actions")
    tool = "duckduckgo_search" if endpoint == "by name" else "create_document"
    revision = MODERN if endpoint == "by name" else endpoint
    call = request_event("tools/call", revision, name=tool, arguments={"metadata": "values"})
    return mcp.handler, call | {"body": call["body"].replace('"values"', values)}


@pytest.mark.stress
@pytest.mark.parametrize(
    ("endpoint", "values"),
    [
        (endpoint, values)
        for endpoint in ("jsonrpc", "actions", "by name", *SERVED)
        for values in VALUES
        if FULL_SIZE or endpoint == "jsonrpc" or values == "fields"
    ],
)
def test_too_many_values_are_refused_and_invoke_nothing(
    invoked: list[str], endpoint: str, values: str, record_property: Callable[[str, object], None]
) -> None:
    """Too many JSON values are refused at a few times their parsing, before the SDK or a call copies them."""
    handler, asked = many_values(endpoint, VALUES[values])
    answer, cost = answer_and_cost(handler, asked)
    assert cost < 8 * len(asked["body"]), "50 MB for a body of 6 MB"
    assert "metadata" in answer["body"]
    assert "has too many values; parameters hold at most 100,000" in answer["body"]
    assert len(answer["body"]) < 8192
    assert not invoked
    record_property("load", "bodies of up to 4 MB at six endpoints")
    record_property("outcome", "refused, each in less than eight times its size of memory")


@pytest.mark.parametrize("revision", SERVED)
def test_many_arguments_of_an_unknown_tool_are_not_copied(invoked: list[str], revision: str) -> None:
    arguments = {f"u{number}": 0 for number in range(110_000)}
    call = request_event("tools/call", revision, name="nothing", arguments=arguments)
    answer, cost = answer_and_cost(mcp.handler, call)
    assert cost < MAX_COST
    assert "'nothing' is not a tool" in answer["body"]


@pytest.mark.parametrize("member", ["_meta", "capabilities", "arguments"])
@pytest.mark.parametrize("revision", SERVED)
def test_messages_with_too_many_values_are_refused(revision: str, member: str) -> None:
    call = request_event("prompts/list", revision)
    message = json.loads(call["body"])
    message["params"][member] = {"a": [[]] * 100_001}
    answer, cost = answer_and_cost(mcp.handler, call | {"body": json.dumps(message)})
    assert cost < MAX_COST
    assert response_message(answer)["error"]["code"] == -32600
    assert "the message holds more than 100,000 values" in answer["body"]


def test_batch_with_too_many_values_is_one_error(invoked: list[str]) -> None:
    call = RPC % json.dumps([0] * 60_000)
    answer, cost = answer_and_cost(jsonrpc.handler, event(f"[{call}, {call}]", path="/jsonrpc"))
    assert cost < MAX_COST
    error = json.loads(answer["body"])
    assert (error["id"], error["error"]["code"]) == (None, -32600)
    assert "a batch holds at most 100,000 values" in answer["body"]
    assert not invoked


def test_as_many_values_as_allowed_are_forwarded(invoked: list[str]) -> None:
    answer = jsonrpc.handler(event(RPC % json.dumps([0] * 99_990), path="/jsonrpc"), None)
    assert "result" in json.loads(answer["body"])
    assert invoked == ["agent_data-create_document"]


@pytest.mark.parametrize("endpoint", ["jsonrpc", *REVISIONS])
def test_long_id_is_refused_and_not_echoed(endpoint: str) -> None:
    """An answer with an id of control characters would be six times as long as the request."""
    id_ = "\1" * 1_000_000
    if endpoint == "jsonrpc":
        call = event({"jsonrpc": "2.0", "method": "tool-server/tools/list", "id": id_}, path="/jsonrpc")
        answer = jsonrpc.handler(call, None)
    else:
        message = request_event("tools/list", endpoint)
        answer = mcp.handler(message | {"body": json.dumps(json.loads(message["body"]) | {"id": id_})}, None)
    error = json.loads(answer["body"])
    assert (error["id"], error["error"]["code"]) == (None, -32600)
    assert "at most 1024 characters" in answer["body"]
    assert len(answer["body"]) < 1024


def test_few_unknown_fields_are_reported_one_by_one() -> None:
    answer = query_knowledge.handler(event({"query": "x", "filter": {}, "top": 1, "filters": {"tag": 1}}), None)
    details = json.loads(answer["body"])["error"]["details"]
    assert {each["field"]: each["message"] for each in details} == dict.fromkeys(
        ("filter", "top", "filters.tag"), "is not a field of this method"
    )


@pytest.fixture
def _required(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Require credentials."""
    monkeypatch.setenv("KHO_AUTH", "required")
    config.cache_clear()
    yield
    monkeypatch.undo()
    config.cache_clear()


@pytest.mark.usefixtures("_required")
def test_large_body_without_credentials_is_refused_before_it_is_parsed(invoked: list[str]) -> None:
    """More than 256 KiB are 413 in each endpoint's format; what is not even JSON shows that nothing was parsed."""
    large = "{" * (LIMIT + 1)
    for body in (large, f'{{"x": "{"y" * LIMIT}"}}'):
        direct = query_experiences.handler(event(body, path=f"/{QUERY}"), None)
        refusal = json.loads(direct["body"])
        assert (direct["statusCode"], refusal["success"], refusal["error"]["code"]) == (413, False, "TOO_LARGE")
        called = jsonrpc.handler(event(body, path="/jsonrpc"), None)
        error = json.loads(called["body"])
        assert (called["statusCode"], error["id"], error["error"]["code"]) == (200, None, 413)
        for revision in REVISIONS:
            tool = recall_kit_mcp.handler(event(body, mcp_protocol_version=revision), None)
            assert tool["statusCode"] == response_message(tool)["error"]["code"] == 413
        for handler, path in ((actions.handler, "/actions"), (mcp.handler, "/mcp")):
            refused = handler(event(body, path=path), None)
            assert refused["statusCode"] == 401
            assert "PARSE" not in refused["body"]
    assert not invoked


@pytest.mark.usefixtures("_required")
def test_body_of_256_kib_without_credentials_is_read(invoked: list[str]) -> None:
    start = '{"jsonrpc": "2.0", "method": "recall-kit/query_experiences", "id": 1, "params": {"keywords": "'
    body = start + "x" * (LIMIT - len(start) - 3) + '"}}'
    assert len(body) == LIMIT
    assert "result" in json.loads(jsonrpc.handler(event(body, path="/jsonrpc"), None)["body"])
    assert invoked == ["recall_kit-query_experiences"]
