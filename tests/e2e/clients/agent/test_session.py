"""One session of an editor, from the start of its server to the end of both."""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import pytest
import urllib3

from tests.helpers.editor_folder import address_of, write_files
from tests.helpers.mcp_editor import editor
from tests.helpers.program import KHO, RESEARCH_AGENT, start
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.helpers.program import RunningProgram

LONG = "Ships of many kinds lie here, and each has its berth.\n\n" * 4000
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


class _Pipe:
    """A client that writes raw lines, which no client library would send."""

    def __init__(self, process: RunningProgram) -> None:
        self.process = process
        assert process.stdin
        assert process.stdout
        self._in: IO[str] = process.stdin
        self._out: IO[str] = process.stdout
        self.ask(0, "initialize", HELLO)
        self.read()
        self.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))

    def write(self, line: str) -> None:
        self._in.write(f"{line}\n")
        self._in.flush()

    def ask(self, number: int, method: str, params: dict[str, Any]) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))

    def read(self) -> Any:
        return json.loads(self._out.readline())

    def close(self) -> int:
        self._in.close()
        return self.process.wait(CEILING_SECONDS)


@contextmanager
def _pipe(folder: Path, data: Path, program: str = RESEARCH_AGENT) -> Iterator[_Pipe]:
    options, pipe = ["--data", str(data)], subprocess.PIPE
    with (
        (folder.parent / "mcp.log").open("w") as log,
        start(program, "mcp", *options, cwd=folder, stdin=pipe, stdout=pipe, stderr=log) as process,
    ):
        try:
            yield _Pipe(process)
        finally:
            process.kill()


def test_managed_server_reads_only_under_the_sessions_roots(tmp_path: Path) -> None:
    folder, data = tmp_path / "work", tmp_path / "data"
    write_files(folder, {"docs/open.md": "# Open\n\nEveryone may know.", "closed.md": "# Closed\n\nNobody may know."})
    with editor(folder, data, "--root", str(folder / "docs")) as session:
        session.result("manage_collections", action="create", collection_name="notes")

        def ingest(path: Path) -> Any:
            params = {"collection": "notes", "path": str(path)}
            url = f"{address_of(data)}/research-agent/ingest_documents"
            return urllib3.request("POST", url, json=params, timeout=CEILING_SECONDS).json()

        assert "error" not in ingest(folder / "docs/open.md")
        assert ingest(folder / "closed.md")["error"]["code"] == "DOCUMENT_PATH_FORBIDDEN"


UNREADABLE: list[tuple[str, int | str | None, int]] = [
    (r'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x","arguments":{"query":"\ud800"}}}', 3, -32602),
    ('{"jsonrpc":"2.0","id":4,', None, -32700),
    ("[" * 100_000, None, -32700),
    ('{"jsonrpc":"2.0","id":5,"method":7}', 5, -32600),
    ('{"id":"six","method":"ping"}', "six", -32600),
    ('{"jsonrpc":"2.0","id":null,"method":"ping"}', None, -32600),
    ('{"jsonrpc":"2.0","id":true,"method":"ping"}', None, -32600),
    ('{"jsonrpc":"2.0","id":1.5,"method":"ping"}', None, -32600),
    ('{"jsonrpc":"2.0","id":8,"method":"tools/call","params":["x"]}', 8, -32600),
    ('{"jsonrpc":"2.0","id":9}', 9, -32600),
    ('{"jsonrpc":"2.0","id":10,"result":7}', None, -32600),
    ('[{"jsonrpc":"2.0","id":11,"method":"ping"}]', None, -32600),
]


@pytest.mark.parametrize("program", [RESEARCH_AGENT, KHO])
def test_invalid_stdio_lines_get_an_error_response(tmp_path: Path, program: str) -> None:
    """Each line that is not a message gets an error, with the request's id if it has a valid one, as at /mcp."""
    folder = tmp_path / "work"
    folder.mkdir()
    with _pipe(folder, tmp_path / "data", program) as client:
        for line, number, code in UNREADABLE:
            client.write(line)
            client.ask(7, "ping", {})
            answer = client.read()
            assert (answer["id"], answer["error"]["code"]) == (number, code)
            assert answer["error"]["data"]["guidance"]
            assert client.read()["id"] == 7
        client.write("")
        client.write(r'{"jsonrpc":"2.0","method":"notifications/none","params":{"said":"\ud800"}}')
        client.ask(7, "ping", {})
        assert client.read() == {"jsonrpc": "2.0", "id": 7, "result": {}}
        assert client.close() == 0


def test_closing_stdin_ends_a_session_waiting_for_a_job(tmp_path: Path) -> None:
    folder, data = tmp_path / "work", tmp_path / "data"
    folder.mkdir()
    with _pipe(folder, data) as client:
        params = {"action": "create", "collection_name": "notes"}
        client.ask(1, "tools/call", {"name": "manage_collections", "arguments": params})
        assert "result" in client.read()
        params = {"content": LONG, "source": "ships", "collection": "notes"}
        call = {"name": "augment_knowledge", "arguments": params, "_meta": {"progressToken": "t"}}
        client.ask(2, "tools/call", call)
        assert client.read()["method"] == "notifications/progress"
        assert client.close() == 0
    assert not (data / "serving.json").exists()
    assert (data / "serve.log").read_text().count("Kho listens on") == 1
