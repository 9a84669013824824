"""`research-agent` at a prompt, where no server runs on the data: the folder is its own for as long as it runs."""

from __future__ import annotations

import http.server
import subprocess
import threading
import time
from typing import TYPE_CHECKING

from tests.e2e.editor import COMMAND, prompt

if TYPE_CHECKING:
    from pathlib import Path

PAGE = b"<html><head><title>Tea</title></head><body><h1>Green tea</h1><p>It is brewed at 75 degrees.</p></body></html>"


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/tea" else 404)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_: object) -> None:
        pass


def test_a_killed_ingestion_goes_on_and_everything_stays(tmp_path: Path) -> None:
    folder, data = tmp_path / "work", tmp_path / "data"
    (folder / "docs").mkdir(parents=True)
    text = "Ships of many kinds lie here, and each has its berth. " * 20
    for number in range(12):
        (folder / f"docs/{number:02}.md").write_text(f"# Ship {number}\n\n{text}")
    assert prompt(folder, data, "collections", "create", "ships")[0] == 0
    command = [COMMAND, "kb", "add-folder", "docs", "--collection", "ships", "--data", str(data)]
    killed = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    log = data / "kho.log"
    while log.read_text().count("research-agent/ingest_documents") < 1:
        assert killed.poll() is None
        time.sleep(0.02)
    killed.kill()
    killed.wait()
    code, done = prompt(folder, data, "kb", "add-folder", "docs", "--collection", "ships")
    assert (code, done["failed"]) == (0, [])
    assert done["added"] + done["updated"] + done["unchanged"] == 12
    assert done["unchanged"] > 0
    code, again = prompt(folder, data, "kb", "add-folder", "docs", "--collection", "ships")
    assert (code, again["unchanged"], again["added"], again["updated"]) == (0, 12, 0, 0)
    code, found = prompt(folder, data, "query", "which ship is number 7?", "--top-k", "3")
    assert (code, found["status"], len(found["results"])) == (0, "success", 3)


def test_pages_texts_and_deletion(tmp_path: Path) -> None:
    folder, data = tmp_path / "work", tmp_path / "data"
    folder.mkdir()
    prompt(folder, data, "collections", "create", "tea")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Page) as pages:
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{pages.server_port}"
        assert prompt(folder, data, "kb", "add-url", f"{url}/tea", "--collection", "tea")[1]["added"] == 1
        code, refused = prompt(folder, data, "kb", "add-url", f"{url}/none", "--collection", "tea")
        assert (code, refused["error"]["code"]) == (5, -32003)
        pages.shutdown()
    code, found = prompt(folder, data, "query", "temperature of tea", "--collections", "tea")
    assert (code, found["results"][0]["source_document"]) == (0, f"{url}/tea")
    assert found["results"][0]["header_path"] == "Green tea"
    asked = [COMMAND, "collections", "delete", "tea", "--data", str(data)]
    done = subprocess.run(asked, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60)
    assert done.returncode == 1
    assert prompt(folder, data, "collections", "delete", "tea", "--yes")[0] == 0
    assert prompt(folder, data, "collections", "list")[1]["collections"] == []
