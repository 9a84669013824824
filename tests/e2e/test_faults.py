"""What happens when the store stalls or dies under a running server."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

ADD = "memory-server/memory/add_message"
GET = "memory-server/memory/get_all_messages"
MESSAGE = {"conversation_id": "faults", "role": "user", "content": "x"}


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data") as server:
        server.call(ADD, **MESSAGE)
        yield server


def test_a_stalled_store_is_said_in_time_and_forgotten_after(own: Server) -> None:
    with own.stalled_store():
        started = time.monotonic()
        error = own.error(ADD, **MESSAGE)
        assert time.monotonic() - started < 28
        assert (error["code"], error["data"]["code"]) == (503, "UNAVAILABLE")
        assert own.get("/health").status == 200
    assert own.call(ADD, **MESSAGE) == {"status": "success", "conversation_id": "faults"}


def test_a_store_that_dies_is_started_again_with_all_it_acknowledged(own: Server) -> None:
    os.kill(own.store_pid, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while (answer := own.rpc({"jsonrpc": "2.0", "method": GET, "params": ["faults"], "id": 1})).get("error"):
        assert answer["error"]["code"] == 503
        assert time.monotonic() < deadline
    assert answer["result"]["messages"] == [{"role": "user", "content": "x"}]
    assert own.call(ADD, **MESSAGE)["status"] == "success"


def test_a_killed_server_leaves_no_store_behind(own: Server) -> None:
    pid = own.store_pid
    own.kill()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and b"Z" not in Path(f"/proc/{pid}/stat").read_bytes().split()[2]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
