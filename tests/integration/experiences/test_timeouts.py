"""A call that exceeds its time limit is a timeout at each endpoint."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from endpoints import jsonrpc
from infra.local.functions import Functions
from infra.local.template import load
from recall_kit import query_experiences
from shared.platform.runtime import runtime
from tests.helpers.dynamodb_requests import answer_operation, intercept_requests
from tests.helpers.experience_client import submit_experience
from tests.helpers.mcp_events import event, response_message
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    import pytest


def test_slow_query_is_a_timeout_at_each_endpoint(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that exceeded the request's time before the query could record its results."""
    submit_experience("Cron job runs twice", "It runs on both nodes.")
    passed = 0.0
    monkeypatch.setattr("shared.rpc.observation.REQUEST_SECONDS", 13.0)
    monkeypatch.setattr("shared.rpc.observation.time", SimpleNamespace(perf_counter=lambda: passed, time=time.time))

    def takes_long(_: Any) -> None:
        nonlocal passed
        passed += 13.001

    functions = {name: replace(each, timeout=CEILING_SECONDS) for name, each in load().functions.items()}
    asked_by = {"keywords": "cron job runs twice"}
    single = {"jsonrpc": "2.0", "method": "recall-kit/query_experiences", "params": asked_by, "id": 1}
    with intercept_requests(answer_operation("BatchGetItem", takes_long)):
        direct = query_experiences.handler(event(asked_by, path="/recall-kit/query_experiences"), None)
        monkeypatch.setattr(runtime, "functions", Functions(functions))
        by_jsonrpc = response_message(jsonrpc.handler(event(single, path="/jsonrpc"), None))["result"]
    for answer in (response_message(direct), by_jsonrpc):
        assert (answer["success"], answer["error"]["code"]) == (False, "TIMEOUT")
    assert direct["statusCode"] == 504


def test_unresponsive_function_is_a_timeout(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(function: str, _payload: bytes) -> bytes:
        raise TimeoutError(function)

    monkeypatch.setattr(runtime, "functions", silent)
    single = {"jsonrpc": "2.0", "method": "recall-kit/query_experiences", "params": {"keywords": "x"}, "id": 1}
    answer = response_message(jsonrpc.handler(event(single, path="/jsonrpc"), None))
    assert answer["result"]["error"]["code"] == "TIMEOUT"
