"""A running server whose store stalls or dies."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.helpers.kho_server import KhoServer
from tests.helpers.wait import until

if TYPE_CHECKING:
    from collections.abc import Iterator

ADD = "memory-server/memory/add_message"
GET = "memory-server/memory/get_all_messages"
MESSAGE = {"conversation_id": "faults", "role": "user", "content": "x"}


@pytest.fixture
def own(tmp_path: Path) -> Iterator[KhoServer]:
    with KhoServer(tmp_path / "data", production_limits=True) as server:
        server.call(ADD, **MESSAGE)
        yield server


def test_stalled_store_is_reported_until_it_recovers(own: KhoServer) -> None:
    with own.stalled_store():
        error = own.error(ADD, **MESSAGE)
        assert (error["code"], error["data"]["code"]) == (503, "UNAVAILABLE")
        assert own.get("/health").status == 200
    assert own.call(ADD, **MESSAGE) == {"status": "success", "conversation_id": "faults"}


def test_crashed_store_restarts_with_all_acknowledged_writes(own: KhoServer) -> None:
    os.kill(own.store_pid, signal.SIGKILL)
    answers: list[Any] = []

    def is_back() -> bool:
        answers.append(own.rpc({"jsonrpc": "2.0", "method": GET, "params": ["faults"], "id": 1}))
        return "result" in answers[-1]

    until(is_back)
    assert {answer["error"]["code"] for answer in answers[:-1]} <= {503}
    assert answers[-1]["result"]["messages"] == [{"role": "user", "content": "x"}]
    assert own.call(ADD, **MESSAGE)["status"] == "success"


def test_killed_server_leaves_no_store_process(own: KhoServer) -> None:
    pid = own.store_pid
    own.kill()
    until(lambda: has_ended(pid))


def has_ended(pid: int) -> bool:
    """Return True if the process is gone or a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"
