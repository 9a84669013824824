"""`research-agent` on the command line without a server: it uses the data folder exclusively while it runs."""

from __future__ import annotations

import http.server
import json
import os
import signal
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest

from tests.helpers.editor_folder import write_files
from tests.helpers.kho_server import KhoServer
from tests.helpers.mcp_editor import run_research_agent
from tests.helpers.program import RESEARCH_AGENT, command, run, start
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = b"<html><head><title>Tea</title></head><body><h1>Green tea</h1><p>It is brewed at 75 degrees.</p></body></html>"


class Site(http.server.ThreadingHTTPServer):
    """A site with one page, and one page that stays unanswered until the site ends."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Page)
        self.slow_requested = threading.Event()
        self.ending = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Page(http.server.BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        if self.path == "/slow":
            self.server.slow_requested.set()
            self.server.ending.wait()
            return
        self.send_response(200 if self.path == "/tea" else 404)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as running:
        threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
        yield running
        running.ending.set()
        running.shutdown()


def test_killed_ingestion_resumes_without_loss(tmp_path: Path) -> None:
    folder, data = tmp_path / "work", tmp_path / "data"
    (folder / "docs").mkdir(parents=True)
    text = "Ships of many kinds lie here, and each has its berth. " * 20
    for number in range(12):
        (folder / f"docs/{number:02}.md").write_text(f"# Ship {number}\n\n{text}")
    assert run_research_agent(folder, data, "collections", "create", "ships")[0] == 0
    add = ["kb", "add-folder", "docs", "--collection", "ships", "--data", str(data)]
    killed = start(RESEARCH_AGENT, *add, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: "research-agent/ingest_documents" in (data / "kho.log").read_text())
    killed.kill()
    killed.wait()
    code, report = run_research_agent(folder, data, "kb", "add-folder", "docs", "--collection", "ships")
    assert (code, report["failed"]) == (0, [])
    assert report["added"] + report["updated"] + report["unchanged"] == 12
    assert report["unchanged"] > 0
    code, again = run_research_agent(folder, data, "kb", "add-folder", "docs", "--collection", "ships")
    assert (code, again["unchanged"], again["added"], again["updated"]) == (0, 12, 0, 0)
    code, result = run_research_agent(folder, data, "query", "which ship is number 7?", "--top-k", "3")
    assert (code, result["status"], len(result["results"])) == (0, "success", 3)


def test_pages_texts_and_deletion(tmp_path: Path, site: Site) -> None:
    folder, data = tmp_path / "work", tmp_path / "data"
    folder.mkdir()
    run_research_agent(folder, data, "collections", "create", "tea")
    assert (
        run_research_agent(folder, data, "kb", "add-url", f"{site.address}/tea", "--collection", "tea")[1]["added"] == 1
    )
    code, refused = run_research_agent(folder, data, "kb", "add-url", f"{site.address}/none", "--collection", "tea")
    assert (code, refused["error"]["code"]) == (5, -32003)
    code, result = run_research_agent(folder, data, "query", "temperature of tea", "--collections", "tea")
    assert (code, result["results"][0]["source_document"]) == (0, f"{site.address}/tea")
    assert result["results"][0]["header_path"] == "Green tea"
    delete = ["collections", "delete", "tea", "--json", "--data", str(data)]
    process = run(RESEARCH_AGENT, *delete, cwd=folder, stdin=subprocess.DEVNULL)
    refused = json.loads(process.stdout)
    assert (process.returncode, refused["error"]["data"]["code"]) == (4, "COLLECTION_NOT_CONFIRMED")
    assert "--yes" in refused["error"]["data"]["guidance"]
    assert run_research_agent(folder, data, "collections", "delete", "tea", "--yes")[0] == 0
    assert run_research_agent(folder, data, "collections", "list")[1]["collections"] == []


def test_ctrl_c_reports_what_was_stored(tmp_path: Path, site: Site) -> None:
    add = ["kb", "add-url", f"{site.address}/slow", "--collection", "tea", "--data", str(tmp_path / "data")]
    with start(RESEARCH_AGENT, *add, cwd=tmp_path, stderr=subprocess.PIPE) as running:
        assert site.slow_requested.wait(CEILING_SECONDS)
        running.send_signal(signal.SIGINT)
        assert "added documents are kept" in running.communicate(timeout=CEILING_SECONDS)[1]
    assert running.returncode == 130


def test_ctrl_c_waits_for_no_answer(tmp_path: Path) -> None:
    """The server's store stands still while documents are being sent."""
    folder = tmp_path / "ships"
    write_files(folder, {f"{number}.md": "Ships of many kinds lie here. " * 1000 for number in range(40)})
    with KhoServer(tmp_path / "data") as server:
        server.call("research-agent/manage_collections", action="create", collection_name="ships")
        options = ["--collection", "ships", "--data", str(server.data), "--timeout", "3600"]
        info = {"action": "info", "collection_name": "ships"}
        with start(RESEARCH_AGENT, "kb", "add-folder", ".", *options, cwd=folder, stderr=subprocess.PIPE) as running:
            until(lambda: server.call("research-agent/manage_collections", **info)["collection"]["documents"])
            with server.stalled_store():
                running.send_signal(signal.SIGINT)
                assert "added documents are kept" in running.communicate(timeout=CEILING_SECONDS)[1]
        assert running.returncode == 130


def test_concurrent_commands_wait_for_the_folder_lock(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert run_research_agent(tmp_path, data, "collections", "create", "tea")[0] == 0
    listing = ["collections", "list", "--json", "--data", str(data)]
    running = [start(RESEARCH_AGENT, *listing, cwd=tmp_path, stdout=subprocess.PIPE) for _ in range(3)]
    answers = [json.loads(each.communicate(timeout=CEILING_SECONDS)[0]) for each in running]
    assert [each["message"] for each in answers] == ["1 collection."] * 3


def test_broken_pipe_and_ascii_terminal(tmp_path: Path) -> None:
    data = tmp_path / "data"
    name = "đồ-uống-😀"
    assert run_research_agent(tmp_path, data, "collections", "create", name)[0] == 0
    for options in ((), ("--json",)):
        info = [*command(RESEARCH_AGENT), "collections", "info", name, *options, "--data", str(data)]
        with subprocess.Popen(info, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as unread:
            assert unread.stdout
            unread.stdout.close()
            assert unread.stderr
            assert (unread.stderr.read(), unread.wait(timeout=CEILING_SECONDS)) == (b"", 0)
        ascii_alone = os.environ | {"PYTHONIOENCODING": "ascii"}
        process = subprocess.run(
            info, cwd=tmp_path, env=ascii_alone, capture_output=True, check=False, timeout=CEILING_SECONDS
        )
        assert (process.stderr, process.returncode) == (b"", 0)
        if options:
            assert json.loads(process.stdout.decode("ascii"))["collection"]["name"] == name
