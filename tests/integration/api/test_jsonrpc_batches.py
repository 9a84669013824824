"""The calls of a JSON-RPC batch run concurrently."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

from endpoints import jsonrpc
from shared.platform.runtime import runtime
from tests.helpers.mcp_events import event
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    import pytest


def test_batch_calls_run_concurrently(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check concurrency with calls that answer only when all have started: with fewer in parallel, none answers."""
    all_there = threading.Barrier(50, timeout=CEILING_SECONDS)

    def together(_function: str, payload: bytes) -> bytes:
        all_there.wait()
        return json.dumps({"result": json.loads(payload)["params"]}).encode()

    monkeypatch.setattr(runtime, "functions", together)
    calls: list[Any] = [
        {"jsonrpc": "2.0", "method": "tool-server/tools/list", "params": {"number": number}, "id": number}
        for number in range(50)
    ]
    answer = jsonrpc.handler(event(calls, path="/jsonrpc"), None)
    responses = json.loads(answer["body"])
    assert [each["result"]["number"] for each in responses] == [each["id"] for each in responses] == list(range(50))
