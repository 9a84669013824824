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


def store_pid(server: Server) -> int:
    """The process that holds the server's data."""
    tasks = Path(f"/proc/{server.process.pid}/task").glob("*/children")
    children = [int(pid) for task in tasks for pid in task.read_text().split()]
    return next(pid for pid in children if b"dynoxide" in Path(f"/proc/{pid}/cmdline").read_bytes())


def test_a_stalled_store_is_said_in_time_and_forgotten_after(own: Server) -> None:
    pid = store_pid(own)
    os.kill(pid, signal.SIGSTOP)
    try:
        started = time.monotonic()
        error = own.error(ADD, **MESSAGE)
        assert time.monotonic() - started < 28
        assert (error["code"], error["data"]["code"]) == (503, "UNAVAILABLE")
        assert own.get("/health").status == 200
    finally:
        os.kill(pid, signal.SIGCONT)
    assert own.call(ADD, **MESSAGE) == {"status": "success", "conversation_id": "faults"}


def test_a_store_that_dies_is_started_again_with_all_it_acknowledged(own: Server) -> None:
    os.kill(store_pid(own), signal.SIGKILL)
    deadline = time.monotonic() + 20
    while (answer := own.rpc({"jsonrpc": "2.0", "method": GET, "params": ["faults"], "id": 1})).get("error"):
        assert answer["error"]["code"] == 503
        assert time.monotonic() < deadline
    assert answer["result"]["messages"] == [{"role": "user", "content": "x"}]
    assert own.call(ADD, **MESSAGE)["status"] == "success"


def test_a_killed_server_leaves_no_store_behind(own: Server) -> None:
    pid = store_pid(own)
    own.kill()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and b"Z" not in Path(f"/proc/{pid}/stat").read_bytes().split()[2]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
