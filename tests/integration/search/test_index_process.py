"""The embedded index runs in a child process, so that a full disk or a crash of the engine ends no server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from infra.local.search_engine.errors import FolderLocked, IndexDamaged
from infra.local.search_engine.index_process import IndexProcess, _Engine, open_index
from shared.platform.config import config
from shared.platform.runtime import runtime
from shared.rpc.errors import Unavailable
from shared.search.embedding.models import E5_SMALL
from shared.search.index import PassageIndex
from shared.search.passages import DocumentRef
from shared.search.store import Scope, VectorQuery, vector_store
from tests.helpers.passages import found_texts, index_texts
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shared.search.embedding.e5 import E5

FULL = str(1 << 40)
"""More megabytes than any disk has free."""


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Yield a patch of the environment, for the minimum of free space."""
    yield monkeypatch
    monkeypatch.undo()
    config.cache_clear()


def _open(folder: Path, disk: pytest.MonkeyPatch, min_free_mb: str = "0") -> IndexProcess:
    disk.setenv("KHO_MIN_FREE_MB", min_free_mb)
    config.cache_clear()
    return IndexProcess(E5_SMALL, folder)


def _pid(store: IndexProcess) -> int:
    assert isinstance(store._engine, _Engine)
    return store._engine._process.pid


def _answers(store: IndexProcess) -> bool:
    try:
        store.count(Scope("t"))
    except Unavailable:
        return False
    return True


def test_engine_killed_by_the_system_is_restarted(e5: E5, tmp_path: Path, disk: pytest.MonkeyPatch) -> None:
    store = _open(tmp_path, disk)
    index = PassageIndex(e5, store)
    index_texts(index, DocumentRef("t", "c", "1"), 1, "acknowledged before")
    killed = _pid(store)
    os.kill(killed, signal.SIGBUS)
    until(lambda: _answers(store) and _pid(store) != killed)
    assert found_texts(index, "t", "before") == ["acknowledged before"]
    assert index_texts(index, DocumentRef("t", "c", "2"), 1, "after")
    store.close()


def test_engine_that_ended_leaves_no_connection_open(tmp_path: Path, disk: pytest.MonkeyPatch) -> None:
    store = _open(tmp_path, disk)
    killed = store._engine
    os.kill(_pid(store), signal.SIGKILL)
    until(lambda: _answers(store))
    closed = store._engine
    store.close()
    assert killed is not closed
    for engine in (killed, closed):
        assert isinstance(engine, _Engine)
        assert all(each.closed for each in engine._connections)


def test_full_disk_refuses_writes_and_answers_searches(e5: E5, tmp_path: Path, disk: pytest.MonkeyPatch) -> None:
    first = _open(tmp_path, disk)
    index_texts(PassageIndex(e5, first), DocumentRef("t", "c", "1"), 1, "kept")
    first.close()
    full = _open(tmp_path, disk, FULL)
    index = PassageIndex(e5, full)
    for change in (
        lambda: index_texts(index, DocumentRef("t", "c", "2"), 1, "refused"),
        lambda: index.delete(DocumentRef("t", "c", "1"), 2),
        lambda: index.delete_tenant("t"),
    ):
        with pytest.raises(Unavailable, match="The disk is full") as refused:
            change()
        assert "Free disk space" in refused.value.guidance
    assert found_texts(index, "t", "kept") == ["kept"]
    full.close()
    again = _open(tmp_path, disk)
    assert index_texts(PassageIndex(e5, again), DocumentRef("t", "c", "2"), 1, "written when there is room")
    again.close()


def test_log_names_the_folder(tmp_path: Path, disk: pytest.MonkeyPatch) -> None:
    disk.setenv("KHO_LOG_FILE", str(tmp_path / "kho.log"))
    _open(tmp_path / "index", disk).close()
    store = _open(tmp_path / "index", disk, FULL)
    with pytest.raises(Unavailable):
        store.erase(Scope("t"))
    store.close()
    other = _open(tmp_path / "other", disk, FULL)
    with pytest.raises(Unavailable):
        other.write([], 1)
    other.close()
    records = [json.loads(line) for line in (tmp_path / "kho.log").read_text().splitlines()]
    assert [(each["operation"], each["failure"]) for each in records] == [
        ("erase", f"{tmp_path / 'index'}: The disk is full."),
        ("write", f"{tmp_path / 'other'}: The disk is full."),
    ]


def test_child_ends_with_a_killed_parent_and_releases_the_lock(tmp_path: Path, disk: pytest.MonkeyPatch) -> None:
    """The child reads from a pipe of its parent's alone, which ends with the parent on every platform."""
    script = (
        "import sys, time; from pathlib import Path; from shared.search.embedding.models import E5_SMALL;"
        "from infra.local.search_engine.index_process import IndexProcess;"
        "store = IndexProcess(E5_SMALL, Path(sys.argv[1]));"
        "print(store._engine._process.pid, flush=True); time.sleep(1e6)"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        parent.kill()
    disk.setattr("infra.local.search_engine.index_process._LOCK_SECONDS", CEILING_SECONDS)
    store = _open(tmp_path, disk)
    assert _pid(store) != child
    store.close()


def test_index_is_not_created_on_a_full_disk(e5: E5, tmp_path: Path, disk: pytest.MonkeyPatch) -> None:
    """Until there is room, searches find nothing, and writes are refused."""
    store = _open(tmp_path / "index", disk, FULL)
    index = PassageIndex(e5, store)
    assert found_texts(index, "t", "anything") == []
    assert (index.count("t"), index.documents(), store.terms(["x"])) == (0, set(), {})
    assert store.latest(Scope("t"), 1) == []
    with pytest.raises(Unavailable, match="The disk is full"):
        index_texts(index, DocumentRef("t", "c", "1"), 1, "refused")
    assert not (tmp_path / "index" / "shard").exists()
    disk.setenv("KHO_MIN_FREE_MB", "0")
    config.cache_clear()
    assert index_texts(index, DocumentRef("t", "c", "1"), 1, "there is room")
    assert found_texts(index, "t", "room") == ["there is room"]
    store.close()


def test_closed_index_is_unavailable(tmp_path: Path, disk: pytest.MonkeyPatch) -> None:
    store = _open(tmp_path, disk)
    store.close()
    for operation in (
        lambda: store.write([], 1),
        lambda: store.set_fields(Scope("t"), {}),
        lambda: store.erase(Scope("t")),
        lambda: store.latest(Scope("t"), 1),
        lambda: store.read(["58e70828-6359-52a5-901a-eb35b5641627"]),
        lambda: store.terms([]),
        lambda: store.count(Scope("t")),
        store.documents,
        lambda: store.search([VectorQuery([0.0] * E5_SMALL.dimensions, Scope("t"), 1)]),
    ):
        with pytest.raises(Unavailable, match="The index is closed"):
            operation()


def test_index_belongs_to_one_process_at_a_time(tmp_path: Path, disk: pytest.MonkeyPatch) -> None:
    disk.setattr("infra.local.search_engine.index_process._LOCK_SECONDS", 0)
    store = _open(tmp_path, disk)
    with pytest.raises(FolderLocked):
        _open(tmp_path, disk)
    store.close()


@pytest.mark.parametrize("damaged", ["space.json", "shard/edge_config.json", "shard"])
def test_damaged_index_is_reported_without_keeping_its_lock(
    damaged: str, e5: E5, tmp_path: Path, disk: pytest.MonkeyPatch
) -> None:
    store = _open(tmp_path, disk)
    index_texts(PassageIndex(e5, store), DocumentRef("t", "c", "1"), 1, "kept")
    store.close()
    for file in [tmp_path / damaged] if (tmp_path / damaged).is_file() else (tmp_path / damaged).rglob("*"):
        if file.is_file():
            file.write_bytes(b"\xff\xfe garbage")
    for _ in range(2):
        with pytest.raises(IndexDamaged, match="is damaged"):
            _open(tmp_path, disk)
    disk.setenv("KHO_QDRANT_FOLDER", str(tmp_path))
    disk.delenv("KHO_QDRANT_URL", raising=False)
    disk.setattr(runtime, "open_index", open_index)
    config.cache_clear()
    with pytest.raises(Unavailable, match="The index is damaged") as refused:
        vector_store(E5_SMALL)
    assert "kho reindex" in refused.value.guidance
