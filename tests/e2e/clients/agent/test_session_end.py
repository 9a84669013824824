"""The end of an editor's session by a signal: the server that the session has started ends with it."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from infra.local.data_folder import read_server_info
from tests.helpers.environment import ORIGINAL_ENVIRONMENT
from tests.helpers.program import KHO, RESEARCH_AGENT, start
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("program", "number"), [(KHO, signal.SIGINT), (RESEARCH_AGENT, signal.SIGTERM)])
def test_signal_ends_a_session_whose_client_keeps_the_pipe_open(tmp_path: Path, program: str, number: int) -> None:
    data = tmp_path / "data"
    pipe = subprocess.PIPE
    options = ["--data", str(data), "--root", str(tmp_path)]
    with start(program, "mcp", *options, stdin=pipe, stdout=pipe, stderr=pipe, env=ORIGINAL_ENVIRONMENT) as session:
        assert session.stdin
        assert session.stdout
        assert session.stderr
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        name = "research_query_knowledge_base" if program == KHO else "query_knowledge_base"
        call = {"name": name, "arguments": {"query": "x"}}
        for message in (
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
        ):
            session.stdin.write(json.dumps(message) + "\n")
            session.stdin.flush()
        assert json.loads(session.stdout.readline())["id"] == 1
        assert json.loads(session.stdout.readline())["id"] == 2
        running = read_server_info(data)
        assert running, "the session has started a server"
        session.send_signal(number)
        assert session.wait(CEILING_SECONDS) == 0
        assert session.stdout.read() == ""
        assert session.stderr.read().endswith("Ended.\n")
    until(lambda: read_server_info(data) is None)
