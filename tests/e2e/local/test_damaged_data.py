"""Damaged or missing parts of a data folder are reported at start with their remedy, and `kho reindex` repairs."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from typing import TYPE_CHECKING

import pytest

from tests.helpers.api_client import run_kho
from tests.helpers.kho_server import KhoServer
from tests.helpers.wait import until

if TYPE_CHECKING:
    from pathlib import Path

FERNS = {"mime_type": "text/plain", "body": "Ferns are watered at dawn."}
QUESTION = "When are ferns watered?"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data folder with a document and an experience. Tests copy it."""
    data: Path = tmp_path_factory.mktemp("whole") / "data"
    with KhoServer(data) as server:
        server.call("agent-data/create_document", document_id="a", parent_id="root", content=FERNS)
        server.call("recall-kit/submit_experience", title="Ferns", problem_description="x", solution="y")
        for number in range(40):
            server.call("memory-server/memory/add_message", conversation_id="c", role="user", content=f"{number}" * 500)
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
        queries = {"agent-data/query_knowledge": {"query": QUESTION}, "recall-kit/query_experiences": {"keywords": "x"}}
        for method, params in queries.items():
            refused = server.post(f"/{method}", json.dumps(params).encode())
            assert (refused.status, b"The index is damaged." in refused.data) == (503, True)
    partial = run_kho("reindex", "--data", str(data), "--tenant", "local")
    assert (partial.returncode, "omit --tenant" in partial.stderr) == (1, True)
    repaired = run_kho("reindex", "--data", str(data), "--json")
    assert (repaired.returncode, json.loads(repaired.stdout)) == (0, {"indexed": 2, "unchanged": 0, "removed": 0})
    assert "Traceback" not in repaired.stderr
    assert "damaged: it is made again" in repaired.stderr
    with KhoServer(data) as server:
        assert server.call("agent-data/query_knowledge", query=QUESTION)["context"]
        assert server.call("recall-kit/query_experiences", keywords="ferns")["data"]["experiences"]
        assert "Warning" not in server.printed()


def test_missing_index_and_damaged_database_are_reported(data: Path) -> None:
    shutil.rmtree(data / "passages")
    with (data / "dynamodb.sqlite").open("r+b") as database:
        size = database.seek(0, 2)
        database.seek(size // 2)
        database.write(b"\xaa" * (size // 4))
    with KhoServer(data) as server:
        until(lambda: server.printed().count("Warning:") == 2)
        assert re.search(r"Warning: The index .* is missing: .* kho reindex --data", server.printed())
        assert re.search(r"Warning: The database .* is damaged .* from a backup", server.printed())


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
