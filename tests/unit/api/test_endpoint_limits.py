"""Limits at every endpoint: the promised number is accepted, one more is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from api.http_events import HttpResponse, fits_event
from endpoints import actions, jsonrpc, mcp, recall_kit_mcp
from infra.local.template import load
from memory_server import get_summary
from shared.platform.config import config
from shared.platform.runtime import runtime
from shared.rpc import invocation
from shared.rpc.errors import TooLarge
from tests.helpers.mcp_events import event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

METHOD = "tool-server/tools/list"
PUBLIC = "recall-kit/query_experiences"


@pytest.fixture
def invoked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Answer calls of functions, and record their names."""
    functions: list[str] = []

    def record(function: str, _payload: bytes) -> bytes:
        functions.append(function)
        return b'{"result": {}}'

    monkeypatch.setattr(runtime, "functions", record)
    return functions


@pytest.fixture(autouse=True)
def _callers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Accept all callers. With the fixture `anonymous`, require credentials, which no request has."""
    monkeypatch.setenv("KHO_AUTH", "required" if "anonymous" in request.fixturenames else "open")
    config.cache_clear()
    yield
    monkeypatch.undo()
    config.cache_clear()


@pytest.fixture
def anonymous() -> None:
    """Send the requests without credentials, which are required."""


def ask(body: Any) -> Any:
    """Return the content of an answer of `/jsonrpc`."""
    answer = jsonrpc.handler(event(body, path="/jsonrpc"), None)
    assert answer["statusCode"] == 200
    return json.loads(answer["body"])


def call(method: Any = METHOD, **changes: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": {}, "id": 1} | changes


def reason(body: Any) -> tuple[int, str]:
    """Return the code of a refused request and what is wrong."""
    error = ask(body)["error"]
    return error["code"], error["data"]["details"]["reason"]


def test_batch_holds_one_to_fifty_calls(invoked: list[str]) -> None:
    assert len(ask([call()] * 50)) == 50
    for number in (0, 51):
        assert reason([call()] * number) == (-32600, f"a batch holds 1 to 50 requests, this one {number}")
    assert len(invoked) == 50


@pytest.mark.usefixtures("anonymous")
def test_anonymous_batch_holds_one_to_five_calls(invoked: list[str]) -> None:
    assert len(ask([call(PUBLIC)] * 5)) == 5
    expected = "a batch without credentials holds 1 to 5 requests, this one 6"
    assert reason([call(PUBLIC)] * 6) == (-32600, expected)
    assert len(invoked) == 5


def test_batch_holds_a_hundred_thousand_values(invoked: list[str]) -> None:
    assert reason([call(params={"many": [0] * 50_000})] * 3) == (-32600, "a batch holds at most 100,000 values")
    assert not invoked


@pytest.mark.parametrize("handler", [actions.handler, mcp.handler, recall_kit_mcp.handler, get_summary.handler])
def test_sixty_four_levels_are_read_everywhere_and_no_more(
    handler: Callable[[Any, Any], Any], invoked: list[str]
) -> None:
    for levels, is_read in ((64, True), (65, False)):
        answer = handler(event("[" * levels + "]" * levels), None)
        assert ("64 levels" in answer["body"]) is not is_read
        assert answer["statusCode"] == 400


def test_sixty_four_levels_are_read_by_jsonrpc_and_no_more() -> None:
    assert ask(json.loads("[" * 64 + "]" * 64))[0]["error"]["code"] == -32600
    assert reason(json.loads("[" * 65 + "]" * 65)) == (-32700, "nested deeper than 64 levels")


@pytest.mark.parametrize("id_", ["x" * 1024, 0, -1.5, None, ""])
def test_ids_are_echoed(id_: Any, invoked: list[str]) -> None:
    assert ask(call(id=id_))["id"] == id_


@pytest.mark.parametrize("id_", ["x" * 1025, [], {}, True])
def test_other_ids_are_refused(id_: Any, invoked: list[str]) -> None:
    expected = "'id' must be a string of at most 1024 characters, a number or null"
    assert reason(call(id=id_)) == (-32600, expected)
    assert ask(call(id=id_))["id"] is None
    assert not invoked


@pytest.mark.parametrize(
    ("request_object", "problem"),
    [
        ('"text"', "a request is a JSON object"),
        ({"method": METHOD, "id": 1}, "'jsonrpc' must be \"2.0\""),
        (call(jsonrpc="1.0"), "'jsonrpc' must be \"2.0\""),
        (call(method=1), "'method' must be a string"),
        (call(params="text"), "'params' must be an object or an array"),
        (call(params=None), "'params' must be an object or an array"),
    ],
)
def test_malformed_requests_invoke_nothing(request_object: Any, problem: str, invoked: list[str]) -> None:
    assert reason(request_object) == (-32600, problem)
    (refused,) = ask([request_object])
    assert refused["error"]["code"] == -32600
    assert not invoked


def test_more_parameters_by_position_than_a_method_has_are_refused(invoked: list[str]) -> None:
    refused = ask(call(params=[None] * 50))["error"]
    assert (refused["code"], refused["data"]["details"][0]["field"]) == (-32602, "params")
    assert not invoked


ROOM = 6 * 1024 * 1024 - 4096
"""6 MB for an event, of which 4 KiB are for status and headers."""


@pytest.mark.parametrize(("character", "size"), [("x", 1), ('"', 2), ("\n", 2), ("\x00", 6), ("ờ", 3), ("😀", 4)])
def test_answer_fits_with_its_escapes_or_is_refused(character: str, size: int) -> None:
    most = (ROOM - 2) // size  # the quotes around the text
    assert fits_event(character * most)
    assert not fits_event(character * (most + 1))
    HttpResponse(200, character * most).to_event("x")  # type: ignore[arg-type]
    with pytest.raises(TooLarge, match="6 MB"):
        HttpResponse(200, character * (most + 1)).to_event("x")  # type: ignore[arg-type]


def test_every_request_ends_by_28_seconds() -> None:
    template = load()
    timeouts = [template.functions[route.function].timeout for route in template.routes]
    assert len(timeouts) > 50
    assert max(timeouts) <= 28
    assert invocation.TIME_LIMIT < 28


def test_anonymous_mcp_batch_is_refused(invoked: list[str]) -> None:
    answer = recall_kit_mcp.handler(event([call("ping")] * 2, mcp_protocol_version="2025-11-25"), None)
    assert answer["statusCode"] == 400
    assert not invoked
