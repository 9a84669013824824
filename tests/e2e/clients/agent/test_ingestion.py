"""Files that change during ingestion, and ingestions that run concurrently, are cancelled or are killed."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import TYPE_CHECKING

from tests.e2e.clients.agent.test_deleted_files import finished
from tests.helpers.editor_folder import sources, stored_hashes, write_files
from tests.helpers.kho_server import KhoServer
from tests.helpers.program import RESEARCH_AGENT, start
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.helpers.mcp_editor import Editor


def test_search_results_follow_file_changes(session: Editor, folder: Path) -> None:
    write_files(folder, {"log/a.md": "# A\n\nThe harbour opens at six.", "log/b.md": "# B\n\nThe lighthouse is red."})
    session.result("manage_collections", action="create", collection_name="log")

    def ingest() -> dict[str, int]:
        done = session.result("ingest_documents", path="log", collection="log")
        return {name: done[name] for name in ("added", "updated", "unchanged", "removed") if done[name]}

    assert ingest() == {"added": 2}
    before = session.result("manage_collections", action="info", collection_name="log")
    assert ingest() == {"unchanged": 2}
    assert session.result("manage_collections", action="info", collection_name="log") == before

    write_files(folder, {"log/a.md": "# A\n\nThe harbour opens at nine."})
    assert ingest() == {"updated": 1, "unchanged": 1}
    result = session.result("query_knowledge_base", query="when does the harbour open?", collections="log")
    assert [each["content"] for each in result["results"] if "harbour" in each["content"]] == [
        "# A\n\nThe harbour opens at nine."
    ]

    (folder / "log/b.md").rename(folder / "log/c.md")
    assert ingest() == {"added": 1, "unchanged": 1, "removed": 1}
    assert sources(session, "what colour has the lighthouse?", "log")[0] == "log/c.md"
    assert "log/b.md" not in stored_hashes(session, "log")

    (folder / "log/c.md").unlink()
    assert ingest() == {"unchanged": 1, "removed": 1}
    assert sources(session, "what colour has the lighthouse?", "log") in (["log/a.md"], [])


def test_concurrent_ingestions_create_no_duplicates(session: Editor, folder: Path, data: Path) -> None:
    write_files(folder, {f"pair/{number}.md": f"# Page {number}\n\nBerth {number} is free." for number in range(12)})
    session.result("manage_collections", action="create", collection_name="pair")
    add = ["kb", "add-folder", "pair", "--collection", "pair", "--json", "--data", str(data)]
    running = [start(RESEARCH_AGENT, *add, cwd=folder, stdout=subprocess.PIPE) for _ in range(2)]
    done = [json.loads(each.communicate(timeout=CEILING_SECONDS)[0]) for each in running]
    assert [each["failed"] for each in done] == [[], []]
    assert sum(each["added"] for each in done) == 12
    info = session.result("manage_collections", action="info", collection_name="pair")["collection"]
    assert (info["documents"], info["chunks"]) == (12, 12)
    result = session.result("query_knowledge_base", query="which berth is free?", collections="pair", top_k=50)
    assert len({each["source_document"] for each in result["results"]}) == len(result["results"]) == 12


def test_progress_is_reported_and_cancelled_ingestion_resumes(session: Editor, folder: Path) -> None:
    text = "Ships of many kinds lie here, and each has its berth. " * 30
    write_files(folder, {f"long/{number:02}.md": f"# Ship {number}\n\n{text}" for number in range(24)})
    session.result("manage_collections", action="create", collection_name="long")
    session.progress.clear()
    session.call_and_cancel("ingest_documents", 18, path="long", collection="long")
    assert {total for _, total in session.progress} == {24}
    assert stored_hashes(session, "long")
    done = session.result("ingest_documents", path="long", collection="long")
    assert (done["added"] + done["updated"] + done["unchanged"], done["failed"]) == (24, [])
    assert done["unchanged"] > 0
    assert len(stored_hashes(session, "long")) == 24


def test_long_ingestion_over_http_survives_any_end_of_the_server(tmp_path: Path) -> None:
    text = "Ships of many kinds lie here, and each has its berth. " * 8
    write_files(tmp_path / "root", {f"{number:02}.md": f"# Ship {number}\n\n{text}" for number in range(16)})
    write_files(tmp_path / "root", {"secret.txt": "The key lies under the mat.", ".gitignore": "secret.txt\n[z-a]\n"})
    with KhoServer(tmp_path / "data", "--root", str(tmp_path / "root")) as server:
        server.call("research-agent/manage_collections", action="create", collection_name="ships")
        forbidden = server.error("research-agent/ingest_documents", collection="ships", path="../data")
        assert (forbidden["code"], forbidden["data"]["code"]) == (-32003, "DOCUMENT_PATH_FORBIDDEN")
        accepted = server.call("research-agent/ingest_documents", collection="ships", path=".", recursive=True)
        assert accepted["status"] == "accepted"
        job_id = accepted["job_id"]
        for end, processed in ((signal.SIGKILL, 3), (signal.SIGTERM, 6), (signal.SIGINT, 9)):
            until(lambda: server.call("research-agent/get_ingestion", job_id=job_id)["processed"] >= processed)  # noqa: B023
            server.process.send_signal(end)
            server.process.wait(CEILING_SECONDS)
            server.start()
        report = finished(server, job_id)
        assert (report["total"], report["processed"], report["failed"]) == (16, 16, [])
        [note] = report["notes"]
        assert (note["path"], note["note"].rpartition(" ")[2]) == (".gitignore", "2")
        info = server.call("research-agent/manage_collections", action="info", collection_name="ships")
        assert info["collection"]["documents"] == 16
        documents = [{"path": "sent.md", "content": f"# Sent\n\n{' ' * 25_000}words"}]
        job = server.call("research-agent/ingest_documents", collection="ships", documents=documents)
        assert job["status"] == "accepted"
        blank, long = (
            server.post("/research-agent/query_knowledge_base", json.dumps({"query": query}).encode())
            for query in (" ", "x" * 2049)
        )
        for answer in (blank, long):
            assert (answer.status, json.loads(answer.data)["error"]["code"]) == (400, "QUERY_INVALID")
        listed = json.loads(server.get("/servers/research-agent/capabilities").data)["capabilities"]["tools"]
        assert {"query_knowledge_base", "ingest_documents"} < {each["name"] for each in listed}
        unknown = server.error("research-agent/get_ingestion", job_id="none")
        assert (unknown["code"], unknown["data"]["code"]) == (-32003, "DOCUMENT_JOB_NOT_FOUND")
