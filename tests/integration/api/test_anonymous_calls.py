"""Requests without credentials, at every endpoint: they invoke no function but those of anonymous methods."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from endpoints import actions, jsonrpc, mcp, recall_kit_mcp
from shared.platform.config import config
from shared.platform.runtime import runtime
from shared.rpc.catalogue import catalogue
from shared.rpc.mcp_catalog import mcp_catalog
from tests.helpers.mcp_events import HANDSHAKE, REVISIONS, event, request_event, response_message

if TYPE_CHECKING:
    from collections.abc import Iterator

METHODS = catalogue().methods
ANONYMOUS = [name for name, entry in METHODS.items() if entry.anonymous]
CLOSED = [name for name in METHODS if name not in ANONYMOUS]
TOOLS = mcp_catalog().tools


@pytest.fixture
def invoked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Require credentials, and yield the names of the functions that are invoked."""
    monkeypatch.setenv("KHO_AUTH", "required")
    config.cache_clear()
    functions: list[str] = []

    def record(function: str, _payload: bytes) -> bytes:
        functions.append(function)
        return b'{"result": {}}'

    monkeypatch.setattr(runtime, "functions", record)
    yield functions
    monkeypatch.undo()
    config.cache_clear()


def call(method: str, id_: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": {}, "id": id_}


def ask_jsonrpc(body: Any) -> tuple[int, Any]:
    answer = jsonrpc.handler(event(body, path="/jsonrpc"), None)
    return answer["statusCode"], json.loads(answer["body"])


def test_mixed_batches_invoke_anonymous_methods_only(invoked: list[str]) -> None:
    """Each protected call in a batch is refused on its own, and invokes nothing."""
    for start in range(0, len(CLOSED), 4):
        mixed = [*CLOSED[start : start + 4], ANONYMOUS[0]]
        status, answers = ask_jsonrpc([call(method, number) for number, method in enumerate(mixed)])
        assert status == 200
        refused = [each["error"] if "error" in each else each["result"].get("error", {}) for each in answers]
        assert [error.get("code") in (401, "NOT_SIGNED_IN") for error in refused] == [True] * (len(mixed) - 1) + [False]
    assert set(invoked) == {METHODS[ANONYMOUS[0]].function}


def test_anonymous_batch_of_fifty_is_one_error(invoked: list[str]) -> None:
    """A batch of 50 mixed calls without credentials invokes nothing; of 6 as well; 5 are answered."""
    fifty = [call(method) for method in [*ANONYMOUS, *CLOSED, *METHODS][:50]]
    assert len(fifty) == 50
    for batch in (fifty, [call(ANONYMOUS[0])] * 6):
        status, answer = ask_jsonrpc(batch)
        assert (status, answer["id"], answer["error"]["code"]) == (200, None, -32600)
        assert "without credentials holds 1 to 5 requests" in answer["error"]["data"]["details"]["reason"]
    assert not invoked
    assert len(ask_jsonrpc([call(ANONYMOUS[0])] * 5)[1]) == 5
    assert len(invoked) == 5


def test_actions_and_mcp_invoke_nothing(invoked: list[str]) -> None:
    for name in METHODS:
        body = {"action": name.partition("/")[2], "payload": {}}
        assert actions.handler(event(body, path="/actions"), None)["statusCode"] == 401
        assert ask_jsonrpc(call(name))[0] == (200 if name in ANONYMOUS else 401)
    assert len(invoked) == len(ANONYMOUS)
    for tool in TOOLS:
        for revision in REVISIONS:
            asked = request_event("tools/call", revision, name=tool.name, arguments={})
            assert mcp.handler(asked, None)["statusCode"] == 401
    assert len(invoked) == len(ANONYMOUS)


@pytest.mark.parametrize("revision", REVISIONS)
def test_public_mcp_invokes_anonymous_tools_only(invoked: list[str], revision: str) -> None:
    for tool in TOOLS:
        answer = recall_kit_mcp.handler(request_event("tools/call", revision, name=tool.name, arguments={}), None)
        assert ("result" in response_message(answer)) is tool.anonymous
    for listed in mcp_catalog().resources:
        for method, params in (("resources/list", {}), ("resources/read", {"uri": listed.uri})):
            recall_kit_mcp.handler(request_event(method, revision, **params), None)
    assert set(invoked) == {METHODS[name].function for name in ANONYMOUS}
    if revision in HANDSHAKE:
        batch = event([call("tools/call")] * 50, mcp_protocol_version=revision)
        assert recall_kit_mcp.handler(batch, None)["statusCode"] == 400
    assert len(invoked) == len(ANONYMOUS)
