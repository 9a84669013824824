"""A full disk ends no server: writes are refused, reads are answered, and the server starts on it."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.helpers.api_client import run_kho
from tests.helpers.environment import ORIGINAL_ENVIRONMENT
from tests.helpers.kho_server import KhoServer
from tests.helpers.program import RESEARCH_AGENT, run
from tests.helpers.size import FULL_SIZE, sized
from tests.helpers.small_disk import fill, make_room, mountable, mounted
from tests.helpers.wait import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.helpers.small_disk import FileSystem

ROUNDS: Final = sized(2, full=200)
KILLS: Final = sized(1, full=20)
FERNS: Final = {"mime_type": "text/plain", "body": "Ferns are watered at dawn."}
QUESTION: Final = "When are ferns watered?"
READS: Final[dict[str, dict[str, Any]]] = {
    "agent-data/get_document": {"document_id": "a"},
    "agent-data/list_children": {"parent_id": "root"},
    "agent-data/document_history": {"document_id": "a"},
    "agent-data/query_knowledge": {"query": QUESTION},
    "memory-server/memory/get_all_messages": {"conversation_id": "c"},
    "memory-server/memory/get_context": {"conversation_id": "c"},
    "recall-kit/query_experiences": {"keywords": "ferns"},
    "research-agent/query_knowledge_base": {"query": QUESTION},
    "research-agent/manage_collections": {"action": "list"},
    "device-server/devices/list": {},
}


def post(server: KhoServer, method: str, params: dict[str, Any]) -> tuple[int, Any]:
    """Call a method by its own route. Return status and body."""
    response = server.post(f"/{method}", json.dumps(params).encode())
    return response.status, json.loads(response.data)


@dataclass(slots=True)
class Writer:
    """A writer of everything, with what was acknowledged."""

    server: KhoServer
    number: int = 0
    refused: int = 0
    documents: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    experiences: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def prepare(self) -> None:
        """Write what the others need."""
        for name in ("a", "b"):
            params = {"document_id": name, "parent_id": "root", "content": FERNS}
            self.server.call("agent-data/create_document", **params)
        self.server.call("research-agent/manage_collections", action="create", collection_name="notes")
        self.write()
        assert not self.refused, "there is room"

    def write(self) -> None:
        """Try one write of every kind. Each is acknowledged or refused as retryable."""
        self.number += 1
        text = f"Note {self.number} on ferns."
        name = f"n{self.number}"
        parent = "a" if self.number % 2 else "root"
        if self._try("agent-data/create_document", document_id=name, parent_id="root", content=FERNS):
            self.documents.append(name)
        self._try("agent-data/update_document", document_id="a", patch={"metadata": {"title": text}})
        self._try("agent-data/move_document", document_id="b", new_parent_id=parent)
        self._try("agent-data/delete_document", document_id="b")
        self._try("agent-data/restore_document", document_id="b")
        if self._try("memory-server/memory/add_message", conversation_id="c", role="user", content=text):
            self.messages.append(text)
        self._try("memory-server/memory/set_summary", conversation_id="c", summary=text)
        answer = self._try("recall-kit/submit_experience", title=text, problem_description="x", solution="y")
        if answer:
            self.experiences.append(answer["data"]["id"])
        document = {"path": f"{name}.md", "content": text}
        if self._try("research-agent/ingest_documents", collection="notes", documents=[document]):
            self.files.append(f"{name}.md")
        self._try("research-agent/manage_projects", action="create", project_name=name)

    def check(self) -> None:
        """Assert that everything acknowledged is there, in its order."""
        for name in self.documents:
            assert self.server.call("agent-data/get_document", document_id=name)["content"]["body"] == FERNS["body"]
        stored = self.server.call("memory-server/memory/get_all_messages", conversation_id="c")["messages"]
        assert [each["content"] for each in stored if each["content"] in self.messages] == self.messages
        for id_ in self.experiences:
            assert self.server.call("recall-kit/get_experience", id=id_)["success"]
        info = self.server.call("research-agent/manage_collections", action="info", collection_name="notes", limit=1000)
        assert {each["path"] for each in info["documents"]} >= set(self.files)

    def _try(self, method: str, **params: Any) -> Any:
        """Return the answer of a write, None if it was refused."""
        status, answer = post(self.server, method, params)
        if status == 200:
            return answer
        self.refused += 1
        # A document whose deletion took effect before a refusal cannot be moved, and so on.
        assert status in (404, 409, 503), (method, answer)
        assert status != 503 or answer["error"]["message"] == "The disk is full.", (method, answer)
        return None


def assert_reads(server: KhoServer) -> None:
    """Assert that every read is answered."""
    answers = {method: post(server, method, params) for method, params in READS.items()}
    assert {method: answer for method, answer in answers.items() if answer[0] != 200} == {}
    assert answers["agent-data/query_knowledge"][1]["context"]
    assert answers["recall-kit/query_experiences"][1]["data"]["experiences"]
    assert answers["research-agent/query_knowledge_base"][1]["results"]


@pytest.mark.stress
def test_full_disk_refuses_writes_and_answers_reads(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """On a full disk, writes are refused, reads go on, the server starts, and nothing acknowledged is lost."""
    kinds = mountable()[: 2 if FULL_SIZE else 1]
    refused = 0
    for kind in kinds:
        with mounted(kind, tmp_path) as disk, KhoServer(_linked(disk)) as server:
            writer = Writer(server)
            writer.prepare()
            assert_reads(server)
            fill(disk)
            for _ in range(ROUNDS):
                writer.write()
                assert_reads(server)
            assert writer.refused
            assert server.interrupt() == 0
            fill(disk)
            server.start()
            assert_reads(server)
            for _ in range(KILLS):
                server.kill()
                fill(disk)
                server.start()
                assert_reads(server)
            make_room(disk)
            until(lambda: not _refusals(writer))  # noqa: B023 - awaited in this round
            writer.check()
            refused += writer.refused
    disks = " and a full ".join(kinds) or "disk: no file system can be mounted"
    record_property("load", f"{ROUNDS} writes of each of 10 kinds, Ctrl-C, and {KILLS} x kill -9 on a full {disks}")
    record_property("outcome", f"{refused} writes refused, every read answered, nothing acknowledged lost")


@pytest.mark.parametrize("kind", mountable()[:1])
def test_full_disk_is_told_at_every_endpoint(tmp_path: Path, kind: FileSystem) -> None:
    with mounted(kind, tmp_path) as disk, KhoServer(_linked(disk)) as server:
        server.call("agent-data/query_knowledge", query="x")
        fill(disk)
        document = {"document_id": "d", "parent_id": "root", "content": FERNS}
        message = {"conversation_id": "c", "role": "user", "content": "x" * 100_000}
        experience = {"title": "Ferns", "problem_description": "x", "solution": "y"}
        project = {"action": "create", "project_name": "p"}
        calls: dict[str, Any] = {
            "/agent-data/create_document": document,
            "/memory-server/memory/add_message": message,
            "/recall-kit/submit_experience": experience,
            "/research-agent/manage_projects": project,
            "/actions": {"action": "create_document", "request_id": "r", "payload": document},
            "/jsonrpc": {"jsonrpc": "2.0", "id": 1, "method": "agent-data/create_document", "params": document},
            "/mcp": tool_call("memory_add_message", message),
            "/mcp/recall-kit": tool_call("submit_experience", experience),
        }
        accept = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
        for path, body in calls.items():
            response = server.post(path, json.dumps(body).encode(), **accept)
            assert b"The disk is full." in response.data, (path, response.data)
            assert b"Free disk space" in response.data, (path, response.data)
            assert (response.status == 503) == (not path.startswith(("/mcp", "/jsonrpc"))), (path, response.status)
        arguments = ["projects", "create", "p", "--data", str(server.data)]
        told = run(RESEARCH_AGENT, *arguments, env=ORIGINAL_ENVIRONMENT)
        assert (told.returncode, "The disk is full.\n" in told.stderr) == (1, True), told.stderr


def tool_call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the request that calls a tool."""
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def _linked(disk: Path) -> Path:
    """Return a link to a data folder on the disk: the server's output is written next to it."""
    folder = disk / "data"
    folder.mkdir(mode=0o700)
    link = disk.with_name(f"{disk.name}-data")
    link.symlink_to(folder)
    return link


def _refusals(writer: Writer) -> int:
    before = writer.refused
    writer.write()
    return writer.refused - before


def test_index_is_written_later_if_the_disk_is_full(tmp_path: Path) -> None:
    """The same promise where no file system can be mounted: more free space is required than any disk has."""
    data = tmp_path / "data"
    with KhoServer(data) as server:
        Writer(server).prepare()
        assert_reads(server)
    with KhoServer(data, environment={"KHO_MIN_FREE_MB": str(1 << 40)}) as full:
        later = {"document_id": "later", "parent_id": "root", "content": {"body": "Mosses grow in shade."}}
        assert post(full, "agent-data/create_document", later)[0] == 200, "only the index refuses"
        experience = {"title": "Quokka cache", "problem_description": "It is stale.", "solution": "Clear it."}
        status, answer = post(full, "recall-kit/submit_experience", experience)
        assert status == 200
        assert_reads(full)
    with KhoServer(data) as again:
        until(lambda: _found(again, "Where do mosses grow?"))
        until(lambda: answer["data"]["id"] in _found_experiences(again))
        assert_reads(again)


def _found(server: KhoServer, question: str) -> bool:
    context = server.call("agent-data/query_knowledge", query=question)["context"]
    return any(each["document_id"] == "later" for each in context)


def _found_experiences(server: KhoServer) -> list[str]:
    answer = server.call("recall-kit/query_experiences", keywords="quokka cache")
    return [each["id"] for each in answer["data"]["experiences"]]


@pytest.mark.parametrize("kind", mountable()[:1])
def test_older_data_on_a_full_disk_is_served_and_migrated_at_the_next_start(tmp_path: Path, kind: FileSystem) -> None:
    """A migration that finds the disk full warns. Reads go on, and the next start migrates."""
    with mounted(kind, tmp_path) as disk, KhoServer(_linked(disk)) as server:
        server.call("memory-server/memory/add_message", conversation_id="c", role="user", content="kept")
        server.interrupt()
        with sqlite3.connect(server.data / "dynamodb.sqlite") as database:
            database.execute("DELETE FROM \"kho-DocumentsTable\" WHERE pk = 'S:#format'")
        fill(disk)
        server.start()
        assert "Warning: the data is not migrated: The disk is full. Run later: kho migrate" in server.printed()
        assert server.call("memory-server/memory/get_all_messages", conversation_id="c")["messages"]
        server.interrupt()
        make_room(disk)
        server.start()
        assert "Warning" not in server.printed()
        assert run_kho("migrate", "--data", str(server.data), "--json").stdout == "{}\n"


def test_reads_before_the_first_write_are_answered_on_a_full_disk(tmp_path: Path) -> None:
    """An index that could not be created yet is empty."""
    with KhoServer(tmp_path / "data", environment={"KHO_MIN_FREE_MB": str(1 << 40)}) as server:
        server.call("research-agent/manage_collections", action="create", collection_name="notes")
        assert server.call("agent-data/query_knowledge", query=QUESTION)["context"] == []
        assert server.call("recall-kit/query_experiences", keywords="ferns")["data"]["experiences"] == []
        assert server.call("research-agent/query_knowledge_base", query=QUESTION)["results"] == []
