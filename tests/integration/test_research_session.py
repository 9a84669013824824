"""MCP tools of research-agent on a backend that answers when the test allows it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import anyio
from fastmcp import Client

from infra.clients.agent.files.reader import FileReader
from infra.clients.agent.files.roots import Roots
from infra.clients.agent.stdio_server import research_server
from infra.clients.agent.tools import AgentTools
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

COUNTS = dict.fromkeys(("added", "updated", "unchanged", "removed", "chunks", "pending"), 0)
ACCEPTED = {"status": "accepted", "job_id": "job-1", "collection": "notes", "message": "Accepted."}


class Backend:
    """A backend whose job never ends. It accepts the second request's documents when the test allows it."""

    def __init__(self) -> None:
        self.requests: list[list[str]] = []
        self.waiting = threading.Event()
        self.going_on = threading.Event()
        self.ended = threading.Event()

    def close(self) -> None:
        self.ended.set()

    def call(self, method: str, params: dict[str, Any]) -> Any:
        match method:
            case "augment_knowledge":
                return ACCEPTED
            case "get_ingestion":
                return ACCEPTED | COUNTS | {"status": "running", "processed": 0, "total": 1, "failed": []}
            case "list_documents":
                return {"documents": []}
        self.requests.append([each["path"] for each in params["documents"]])
        if len(self.requests) == 2:
            self.waiting.set()
            assert self.going_on.wait(CEILING_SECONDS)
        return {"status": "success"} | COUNTS | {"added": len(params["documents"])}


def client(
    backend: Backend, folder: Path, *, job_wait_share: float, progress: list[tuple[float, float | None]]
) -> Client[Any]:
    """Return a client of the server, which follows a job for this share of a minute."""

    async def on_progress(done: float, total: float | None, _message: str | None) -> None:
        progress.append((done, total))

    tools = AgentTools(backend, FileReader(Roots([folder])), CEILING_SECONDS, job_wait_share=job_wait_share)
    server = research_server(backend, tools)  # type: ignore[arg-type] # implements the used methods
    return Client(server, progress_handler=on_progress, timeout=CEILING_SECONDS)


def test_unfinished_job_is_answered_as_accepted(tmp_path: Path) -> None:
    progress: list[tuple[float, float | None]] = []

    async def use() -> Any:
        async with client(Backend(), tmp_path, job_wait_share=0.01, progress=progress) as session:
            arguments = {"content": "Ships", "source": "ships", "collection": "notes"}
            return (await session.call_tool("augment_knowledge", arguments)).structured_content

    assert anyio.run(use) == ACCEPTED
    assert progress == sorted(set(progress))


def test_a_cancelled_ingestion_sends_nothing_more(tmp_path: Path) -> None:
    for number in range(24):
        (tmp_path / f"{number:02}.md").write_text(f"# Ship {number}\n\n" + "x" * 5_000)
    backend = Backend()

    async def use() -> None:
        async with client(backend, tmp_path, job_wait_share=1, progress=[]) as session:
            async with anyio.create_task_group() as group:
                group.start_soon(session.call_tool, "ingest_documents", {"path": ".", "collection": "notes"})
                assert await anyio.to_thread.run_sync(backend.waiting.wait, CEILING_SECONDS)
                group.cancel_scope.cancel()
            await session.list_tools()
            backend.going_on.set()

    anyio.run(use)
    assert backend.ended.is_set()
    # Two requests run concurrently. The one in preparation may follow.
    assert 2 <= len(backend.requests) <= 4
