"""Damaged or missing parts of a data folder are reported at start with their remedy, and `kho reindex` repairs."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from tests.helpers.api_client import run_kho
from tests.helpers.environment import ORIGINAL_ENVIRONMENT
from tests.helpers.kho_server import KhoServer
from tests.helpers.program import RESEARCH_AGENT, run
from tests.helpers.wait import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FERNS = {"mime_type": "text/plain", "body": "Ferns are watered at dawn."}
QUESTION = "When are ferns watered?"
QUERIES = {
    "agent-data/query_knowledge": {"query": QUESTION},
    "research-agent/query_knowledge_base": {"query": QUESTION},
    "recall-kit/query_experiences": {"keywords": "x"},
}


def markers(data: Path) -> int:
    """Return the number of messages that are not indexed yet."""
    with closing(sqlite3.connect(f"file:{data / 'dynamodb.sqlite'}?mode=ro", uri=True)) as database:
        (number,) = database.execute("SELECT count(*) FROM 'kho-MemoryTable' WHERE pk LIKE '%#unindexed#%'").fetchone()
    return int(number)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data folder with a document, an experience and a file of a collection. Tests copy it."""
    data: Path = tmp_path_factory.mktemp("whole") / "data"
    with KhoServer(data) as server:
        server.call("agent-data/create_document", document_id="a", parent_id="root", content=FERNS)
        server.call("recall-kit/submit_experience", title="Ferns", problem_description="x", solution="y")
        server.call("research-agent/manage_collections", action="create", collection_name="notes")
        note = {"path": "ferns.md", "content": FERNS["body"]}
        server.call("research-agent/ingest_documents", collection="notes", documents=[note])
        until(lambda: server.call("agent-data/query_knowledge", query=QUESTION)["context"])
        for number in range(40):  # large, with almost nothing to embed
            content = f"{number}{' ' * 900}"
            server.call("memory-server/memory/add_message", conversation_id="c", role="user", content=content)
        until(lambda: not markers(data))
    # The engine keeps what it wrote last in a second file.
    with sqlite3.connect(data / "dynamodb.sqlite") as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    return data


@pytest.fixture
def data(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "data", ignore=shutil.ignore_patterns("*.sock"))


def damage(folder: Path) -> None:
    for file in folder.rglob("*.json"):
        file.write_bytes(b"\xff\xfe garbage")


def test_damaged_index_is_reported_and_repaired(data: Path) -> None:
    damage(data / "passages")
    with KhoServer(data) as server:
        until(lambda: "Warning: The index" in server.printed())
        assert "Run 'kho reindex' while the server is stopped." in server.printed()
        for method, params in QUERIES.items():
            refused = server.post(f"/{method}", json.dumps(params).encode())
            assert (refused.status, b"The index is damaged." in refused.data) == (503, True)
    partial = run_kho("reindex", "--data", str(data), "--tenant", "local")
    assert (partial.returncode, "omit --tenant" in partial.stderr) == (1, True)
    repaired = run_kho("reindex", "--data", str(data), "--json")
    assert (repaired.returncode, json.loads(repaired.stdout)) == (0, {"indexed": 4, "unchanged": 0, "removed": 0})
    assert "Traceback" not in repaired.stderr
    assert "damaged: it is made again" in repaired.stderr
    with KhoServer(data) as server:
        assert server.call("agent-data/query_knowledge", query=QUESTION)["context"]
        assert server.call("recall-kit/query_experiences", keywords="ferns")["data"]["experiences"]
        assert "Warning" not in server.printed()


def lose_files(data: Path) -> None:
    for file in (data / "passages").rglob("*"):
        if file.is_file():
            file.unlink()


def lose_segments(data: Path) -> None:
    for segments in (data / "passages").rglob("segments"):
        shutil.rmtree(segments)


def lose_folder(data: Path) -> None:
    shutil.rmtree(data / "passages")


def is_reported_and_refused(server: KhoServer) -> bool:
    """Return True once the loss is printed; searches are refused then."""
    until(lambda: "Warning: The index" in server.printed())
    for method, params in QUERIES.items():
        refused = server.post(f"/{method}", json.dumps(params).encode())
        assert (refused.status, b"kho reindex" in refused.data) == (503, True), (method, refused.data)
    return bool(
        re.search(
            r"passages and .*experiences and .*messages has lost its files: .* kho reindex --data", server.printed()
        )
    )


@pytest.mark.parametrize("lose", [lose_segments, lose_folder])
def test_each_loss_of_an_index_is_reported_and_refused(data: Path, lose: Callable[[Path], None]) -> None:
    lose(data)
    with KhoServer(data) as server:
        assert is_reported_and_refused(server)


def test_lost_index_is_reported_refused_and_repaired(data: Path) -> None:
    lose_files(data)
    (data / "stream-workers-index_knowledge.json").unlink()
    with KhoServer(data) as server:
        assert is_reported_and_refused(server)
        until((data / "problems.json").exists)
        doctor = run_kho("doctor", "--json", "--data", str(data))
        assert (doctor.returncode, "has lost its files" in doctor.stdout) == (1, True)
    doctor = run_kho("doctor", "--json", "--data", str(data))
    assert (doctor.returncode, "has lost its files" in doctor.stdout) == (1, True)
    repaired = run_kho("reindex", "--data", str(data), "--json")
    assert (repaired.returncode, json.loads(repaired.stdout)) == (0, {"indexed": 4, "unchanged": 0, "removed": 0})
    with KhoServer(data) as server:
        assert server.call("agent-data/query_knowledge", query=QUESTION)["context"]
        assert server.call("research-agent/query_knowledge_base", query=QUESTION)["results"]
        assert server.call("recall-kit/query_experiences", keywords="ferns")["data"]["experiences"]
        until((data / "problems.json").exists)
        assert "Warning" not in server.printed()


def test_lost_index_of_experiences_is_repaired_alone(data: Path) -> None:
    """The index of documents is lost too, and neither read nor made again."""
    lose_folder(data)
    repaired = run_kho("reindex", "--data", str(data), "--collection", "experiences", "--json")
    assert (repaired.returncode, json.loads(repaired.stdout)) == (0, {"indexed": 1, "unchanged": 0, "removed": 0})
    with KhoServer(data) as server:
        assert server.call("recall-kit/query_experiences", keywords="ferns")["data"]["experiences"]
        assert server.post("/agent-data/query_knowledge", b'{"query": "ferns"}').status == 503


def test_lost_index_of_experiences_stops_no_other_repair(data: Path) -> None:
    shutil.rmtree(data / "passages" / "experiences")
    partial = run_kho("reindex", "--data", str(data), "--tenant", "local", "--json")
    assert (partial.returncode, json.loads(partial.stdout)) == (0, {"indexed": 0, "unchanged": 3, "removed": 0})


def test_lost_index_is_told_without_a_server(data: Path) -> None:
    """The command line opens the folder by itself."""
    lose_folder(data)
    query = ["query", QUESTION, "--data", str(data)]
    told = run(RESEARCH_AGENT, *query, env=ORIGINAL_ENVIRONMENT)
    assert (told.returncode, "kho reindex" in told.stderr) == (1, True), told


def test_index_without_some_documents_is_reported(data: Path, tmp_path: Path) -> None:
    """The index is from an older backup than the database."""
    shutil.copytree(data / "passages", tmp_path / "backup")
    with KhoServer(data) as server:
        server.call("agent-data/create_document", document_id="b", parent_id="root", content={"body": "Mosses."})
        until(lambda: {each["document_id"] for each in query(server, "Mosses")} >= {"b"})
    shutil.rmtree(data / "passages")
    shutil.copytree(tmp_path / "backup", data / "passages")
    with KhoServer(data) as server:
        until(lambda: "passages lacks 1 documents: searches miss them. End this server" in server.printed())


def query(server: KhoServer, question: str) -> list[dict[str, Any]]:
    context: list[dict[str, Any]] = server.call("agent-data/query_knowledge", query=question)["context"]
    return context


def test_index_is_not_taken_for_lost_before_documents_were_indexed(tmp_path: Path) -> None:
    """The disk was too full for an index; workers index the documents when there is room."""
    data = tmp_path / "data"
    with KhoServer(data, environment={"KHO_MIN_FREE_MB": str(1 << 40)}) as full:
        full.call("agent-data/create_document", document_id="a", parent_id="root", content=FERNS)
        full.call("recall-kit/submit_experience", title="Ferns", problem_description="x", solution="y")
    with KhoServer(data) as server:
        until(lambda: query(server, QUESTION))
        until(lambda: server.call("recall-kit/query_experiences", keywords="ferns")["data"]["experiences"])
        assert "Warning" not in server.printed()


def test_damaged_database_is_reported(data: Path) -> None:
    with (data / "dynamodb.sqlite").open("r+b") as database:
        size = database.seek(0, 2)
        database.seek(size // 2)
        database.write(b"\xaa" * (size // 4))
    with KhoServer(data) as server:
        until(lambda: re.search(r"Warning: The database .* is damaged .* from a backup", server.printed()))


def test_empty_database_beside_an_index_is_refused(data: Path) -> None:
    (data / "dynamodb.sqlite").write_bytes(b"")
    for command in ("serve", "reindex"):
        refused = run_kho(command, "--data", str(data))
        assert refused.returncode == 1
        assert "is missing or empty, but there is an index of its documents" in refused.stderr


def test_unwritable_log_fails_no_request(tmp_path: Path) -> None:
    (tmp_path / "data" / "kho.log").mkdir(parents=True)
    (tmp_path / "data").chmod(0o700)
    with KhoServer(tmp_path / "data") as server:
        server.call("memory-server/memory/get_or_create")
        until(lambda: "log records are lost" in server.printed())
