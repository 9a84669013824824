"""What is kept: the newest revision, in one folder, through kills and concurrent writers."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from shared.config import ConfigurationError
from shared.knowledge.embedding.spaces import E5_SMALL
from shared.knowledge.index import Index
from shared.knowledge.passages import Document, Passage
from shared.knowledge.store.embedded import Embedded, FolderTaken
from tests.integration.knowledge.shelf import TEXTS, found, keep

if TYPE_CHECKING:
    from shared.knowledge.embedding.e5 import E5


def test_ids_are_the_same_whenever_and_wherever() -> None:
    document = Document("t", "c", "d")
    assert Passage(document, 0, "one", 1).id == Passage(document, 0, "two", 2).id
    others = [Document("t2", "c", "d"), Document("t", "c2", "d"), Document("t", "c", "d2"), Document("tc", "", "d")]
    assert len({Passage(each, ordinal, "", 1).id for each in [document, *others] for ordinal in (0, 1)}) == 10
    assert document.id == "58e70828-6359-52a5-901a-eb35b5641627"


def test_a_newer_revision_replaces_all_of_the_older(index: Index, tenant: str) -> None:
    document = Document(tenant, "c", "1")
    assert keep(index, document, 1, "one", "two", "three")
    assert keep(index, document, 2, "four")
    assert (found(index, tenant, "x"), index.revision(document)) == (["four"], 2)
    assert keep(index, document, 2, "four"), "again, with nothing changed"
    assert found(index, tenant, "x") == ["four"]


def test_a_stale_revision_stays_out(index: Index, tenant: str) -> None:
    document = Document(tenant, "c", "1")
    keep(index, document, 5, "five")
    assert not keep(index, document, 4, "older", "and longer")
    assert (found(index, tenant, "x"), index.revision(document)) == (["five"], 5)
    assert not index.delete(document, 4)
    assert found(index, tenant, "x") == ["five"]


def test_what_was_deleted_does_not_come_back_by_a_late_writer(index: Index, tenant: str) -> None:
    document = Document(tenant, "c", "1")
    keep(index, document, 1, "one")
    assert index.delete(document, 2)
    assert not keep(index, document, 1, "one")
    assert not keep(index, document, 2, "two")
    assert (found(index, tenant, "x"), index.count(tenant)) == ([], 0)
    assert keep(index, document, 3, "three"), "restored"
    assert found(index, tenant, "x") == ["three"]


def test_of_many_writers_the_newest_revision_wins(index: Index, tenant: str) -> None:
    document = Document(tenant, "c", "1")
    revisions = list(range(1, 25))
    random.Random(7).shuffle(revisions)
    with ThreadPoolExecutor(8) as threads:
        done = list(
            threads.map(lambda r: keep(index, document, r, *[f"{r} of {n}" for n in range(r % 5 + 1)]), revisions)
        )
    assert done[revisions.index(24)]
    assert sorted(found(index, tenant, "x", top_k=50)) == [f"24 of {number}" for number in range(5)]


def test_a_folder_belongs_to_one_process_and_keeps_what_was_written(e5: E5, tmp_path: Path, tenant: str) -> None:
    first = Embedded(E5_SMALL, str(tmp_path))
    keep(Index(e5, first), Document(tenant, "c", "1"), 1, "kept")
    with pytest.raises(FolderTaken):
        Embedded(E5_SMALL, str(tmp_path))
    first.close()
    again = Embedded(E5_SMALL, str(tmp_path))
    assert found(Index(e5, again), tenant, "x") == ["kept"]
    again.close()


def test_vectors_of_another_space_are_refused(tmp_path: Path) -> None:
    Embedded(E5_SMALL, str(tmp_path)).close()
    for other in (
        replace(E5_SMALL, model="another"),
        replace(E5_SMALL, dimensions=385),
        replace(E5_SMALL, question_prefix=""),
    ):
        with pytest.raises(ConfigurationError, match="was made with"):
            Embedded(other, str(tmp_path))
    Embedded(E5_SMALL, str(tmp_path)).close()


def test_what_was_acknowledged_outlives_a_kill(e5: E5, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.integration.knowledge.indexing", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]) as writer:
        assert writer.stdout
        acknowledged = [writer.stdout.readline().strip() for _ in range(60)]
        os.kill(writer.pid, signal.SIGKILL)
        acknowledged += writer.stdout.read().split()
    store = Embedded(E5_SMALL, str(tmp_path))
    index = Index(e5, store)
    assert all(index.revision(Document("t", "c", each)) == 1 for each in acknowledged)
    assert index.count("t") >= len(acknowledged)
    assert found(index, "t", f"note {acknowledged[-1]}")[0] == f"note {acknowledged[-1]}"
    assert keep(index, Document("t", "c", "after"), 1, "writing goes on")
    store.close()


def test_searches_go_on_while_the_index_is_written_and_settled(
    e5: E5, tmp_path: Path, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.knowledge.store.embedded._SETTLE_AFTER", 40)
    store = Embedded(E5_SMALL, str(tmp_path))
    index = Index(e5, store)
    keep(index, Document(tenant, "c", "0"), 1, TEXTS[0])
    finished = threading.Event()

    def asking() -> int:
        asked = 0
        while not finished.is_set() or not asked:
            assert found(index, tenant, "doi tuyen bong da")[0] == TEXTS[0]
            asked += 1
        return asked

    with ThreadPoolExecutor(4) as threads:
        askers = [threads.submit(asking) for _ in range(2)]
        written = list(
            threads.map(
                lambda number: keep(index, Document(tenant, "c", f"n{number}"), 1, f"note {number}"), range(120)
            )
        )
        finished.set()
        assert all(asker.result() for asker in askers)
    assert all(written)
    assert index.count(tenant) == 121
    store.close()
