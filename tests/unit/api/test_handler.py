"""Handlers of methods: the size of their answers, and the caller whom they serve."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from api.authentication import anonymous_source
from api.handler import method
from api.http_events import HttpRequest
from shared.platform.config import config
from shared.rpc.caller import Caller
from shared.rpc.mcp_catalog import McpTool
from shared.rpc.method import Params
from tests.helpers.mcp_events import event

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shared.rpc.caller import Role


@pytest.fixture(autouse=True)
def _open(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("KHO_AUTH", "open")
    config.cache_clear()
    yield
    config.cache_clear()


class SizeParams(Params):
    size: int


@dataclass
class Text:
    text: str


@method("memory-server/text", role="writer", example={"size": 1})
def text_of(params: SizeParams, caller: Caller) -> Text:
    return Text("x" * params.size)


EMPTY_ANSWER = len('{"result": {"text": ""}}')


def call(size: Any, role: Role) -> Any:
    caller = Caller("sub", frozenset({role}), "tenant").record()
    return text_of({"method": "", "params": {"size": size}, "caller": caller, "correlation_id": "c"}, None)


def test_answer_to_an_endpoint_has_6_mib_at_most() -> None:
    most = 6 * 1024 * 1024 - EMPTY_ANSWER
    assert len(call(most, "writer")["result"]["text"]) == most
    refused = call(most + 1, "writer")["error"]
    assert (refused["kind"], refused["message"]) == ("TooLarge", "The answer exceeds 6 MB.")


def test_answer_to_the_gateway_has_6_mb_at_most() -> None:
    room = 6 * 1024 * 1024 - 4096
    for size, status in ((room - 100, 200), (room, 413)):
        answer = text_of(event({"size": size}, path="/memory-server/text"), None)
        assert answer["statusCode"] == status


@pytest.mark.parametrize("to_read", [True, False])
def test_answer_has_a_text_if_it_is_to_be_read(to_read: bool) -> None:
    tool = McpTool("Text", "reads", "Return a text.", text=lambda result: f"{len(result.text)} letters")
    told = method("memory-server/text", role="writer", tool=tool)(text_of.method.run)
    caller = Caller("sub", frozenset({"writer"}), "tenant").record()
    call = {"method": "", "params": {"size": 3}, "caller": caller, "correlation_id": "c", "to_read": to_read}
    assert told(call, None) == {"result": {"text": "xxx"}} | ({"text": "3 letters"} if to_read else {})


def test_role_is_required_before_parameters_are_read() -> None:
    assert call("no number", "reader")["error"]["kind"] == "NotAllowed"
    assert call("no number", "writer")["error"]["kind"] == "InvalidParams"
    assert call(1, "operator")["result"] == {"text": "x"}


def test_example_is_that_of_the_method() -> None:
    assert text_of.example == {"size": 1}
    assert method("memory-server/text", role="writer")(text_of.method.run).example == {}


def test_source_of_an_open_server_is_the_gateways_word() -> None:
    request = HttpRequest.from_event(event({}))
    assert anonymous_source(request) == "127.0.0.1"
    assert json.loads(request.body) == {}
