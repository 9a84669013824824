"""Forgotten texts are in no file of the data folder: not in tables, indexes, logs or exports."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from tests.helpers.api_client import run_kho
from tests.helpers.kho_server import KhoServer
from tests.helpers.size import sized
from tests.helpers.wait import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MEMORY = "memory-server/memory"
MARKER = "zqxforgotten"
KEPT = "zqxkept"


def say(server: KhoServer, conversation_id: str, text: str, **more: Any) -> None:
    server.call(f"{MEMORY}/add_message", conversation_id=conversation_id, role="user", content=text, **more)


def delete_marked(server: KhoServer, conversation_id: str) -> None:
    """Delete the messages with the marker, one by one."""
    for message in server.call(f"{MEMORY}/list_messages", conversation_id=conversation_id)["messages"]:
        if MARKER in message["content"]:
            ids = {"conversation_id": conversation_id, "message_id": message["message_id"]}
            server.call(f"{MEMORY}/delete_message", **ids)


def stored(data: Path, condition: str) -> int:
    with closing(sqlite3.connect(f"file:{data / 'dynamodb.sqlite'}?mode=ro", uri=True, timeout=30)) as database:
        (number,) = database.execute(f"SELECT count(*) FROM 'kho-MemoryTable' WHERE {condition}").fetchone()
    return int(number)


@pytest.mark.stress
def test_forgotten_texts_are_in_no_file(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """Deleted messages, cleared conversations and an erased subject are in no file after writers and a kill -9."""
    data = tmp_path / "data"
    rounds = sized(3, full=60)

    def work(writer: int) -> None:
        for number in range(rounds):
            chat, theirs = f"chat_{writer}", f"person_{writer}_{number}"
            say(server, chat, f"{MARKER} deleted {writer} {number}.")
            say(server, chat, f"{KEPT} {writer} {number}.")
            delete_marked(server, chat)
            say(server, f"cleared_{writer}", f"{MARKER} cleared {number}.")
            server.call(f"{MEMORY}/set_summary", conversation_id=f"cleared_{writer}", summary=f"{MARKER} summary.")
            server.call(f"{MEMORY}/clear", conversation_id=f"cleared_{writer}")
            say(server, theirs, f"{MARKER} of a person {number}.", subject=f"person:{MARKER}")
        server.call(f"{MEMORY}/erase_subject", subject=f"person:{MARKER}")

    with KhoServer(data) as server, ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
        server.kill()
    with KhoServer(data) as server:
        until(lambda: server.call(f"{MEMORY}/erase_subject", subject=f"person:{MARKER}")["status"] == "erased")
        until(lambda: not stored(data, f"item_json LIKE '%{MARKER}%' OR pk LIKE '%#unindexed#%'"))
        found = server.call(f"{MEMORY}/search", query=MARKER, limit=50)["messages"]
        assert all(MARKER not in each["content"] for each in found)
    exported = run_kho("tenant", "export", "local", "--to", str(tmp_path / "export"), "--data", str(data))
    assert exported.returncode == 0, exported.stderr
    with closing(sqlite3.connect(data / "dynamodb.sqlite")) as database:
        database.execute("VACUUM")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    texts = {file: file.read_bytes() for file in files}
    assert [str(file) for file, content in texts.items() if MARKER.encode() in content] == []
    assert any(KEPT.encode() in content for content in texts.values())
    record_property("load", f"4 writers, {rounds * 4 * 3} forgotten texts, kill -9")
    record_property("outcome", "0 files with a marker")
