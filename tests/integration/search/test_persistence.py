"""The newest revision persists in one folder, through kills and concurrent writers."""

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

from infra.local.search_engine.embedded import EmbeddedVectorStore
from infra.local.search_engine.errors import FolderLocked
from shared.platform.config import ConfigurationError
from shared.search.embedding.models import E5_SMALL
from shared.search.index import PassageIndex, scope_of
from shared.search.passages import SPLITTER, DocumentRef, Passage
from shared.search.store import Scope
from tests.helpers.passages import TEXTS, found_texts, index_texts

if TYPE_CHECKING:
    from shared.search.embedding.e5 import E5


def test_point_ids_are_deterministic() -> None:
    document = DocumentRef("t", "c", "d")
    assert Passage(document, 0, "one", 1).id == Passage(document, 0, "two", 2).id
    others = [
        DocumentRef("t2", "c", "d"),
        DocumentRef("t", "c2", "d"),
        DocumentRef("t", "c", "d2"),
        DocumentRef("tc", "", "d"),
    ]
    assert len({Passage(each, ordinal, "", 1).id for each in [document, *others] for ordinal in (0, 1)}) == 10
    assert document.id == "58e70828-6359-52a5-901a-eb35b5641627"


def test_newer_revision_replaces_the_older(index: PassageIndex, tenant: str) -> None:
    document = DocumentRef(tenant, "c", "1")
    assert index_texts(index, document, 1, "one", "two", "three")
    assert index_texts(index, document, 2, "four")
    assert (found_texts(index, tenant, "x"), index._version(document) // 2) == (["four"], 2)
    assert index_texts(index, document, 2, "four"), "again, with nothing changed"
    assert found_texts(index, tenant, "x") == ["four"]


def test_revision_that_is_made_again_has_no_passage_of_a_longer_splitting(index: PassageIndex, tenant: str) -> None:
    """A document that another splitter cuts into fewer passages keeps none of the former ones."""
    document = DocumentRef(tenant, "c", "a")
    index_texts(index, document, 1, "fox", "whale", "crow")
    index_texts(index, document, 1, "fox and whale and crow")
    assert index.count(tenant) == 1


def test_passages_of_an_earlier_splitter_are_known_and_not_resumed(
    index: PassageIndex, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the splitter has changed, all passages of a document are made again, also where a run was interrupted."""
    document = DocumentRef(tenant, "c", "a")
    index_texts(index, document, 1, *(f"former {number}" for number in range(20)))
    assert not index.is_outdated(document)
    monkeypatch.setattr("shared.search.index.SPLITTER", SPLITTER + 1)
    assert index.is_outdated(document)
    passages = [Passage(document, number, f"new {number}", 1) for number in range(20)]
    index.replace(document, 1, passages, resume=True)
    assert not index.is_outdated(document)
    assert [each.text for each in index.passages(document, range(20))] == [each.text for each in passages]


def test_nothing_is_left_of_the_words_of_a_document(
    index: PassageIndex, store: EmbeddedVectorStore, tenant: str
) -> None:
    documents = [DocumentRef(tenant, collection, "1") for collection in ("c", "c", "d", "e")]
    for document in documents:
        index_texts(index, document, 1, "fox", "whale")
    words = Scope(tenant, kind="words")
    assert store.count(words) == 3
    assert index.documents(tenant) == {scope_of(document) for document in documents}
    index.delete(documents[0], 1)
    assert store.count(words) == 2
    index_texts(index, documents[0], 1, "late")
    assert store.count(words) == 2
    index.erase(scope_of(documents[2]))
    assert store.count(words) == 1
    index.delete_collection(tenant, "e")
    assert store.count(words) == 0


def test_stale_revision_is_ignored(index: PassageIndex, tenant: str) -> None:
    document = DocumentRef(tenant, "c", "1")
    index_texts(index, document, 5, "five")
    assert not index_texts(index, document, 4, "older", "and longer")
    assert (found_texts(index, tenant, "x"), index._version(document) // 2) == (["five"], 5)
    assert not index.delete(document, 4)
    assert found_texts(index, tenant, "x") == ["five"]


def test_late_writer_does_not_resurrect_a_deleted_document(index: PassageIndex, tenant: str) -> None:
    document = DocumentRef(tenant, "c", "1")
    index_texts(index, document, 1, "one")
    assert index.delete(document, 2)
    assert not index_texts(index, document, 1, "one")
    assert not index_texts(index, document, 2, "two")
    assert (found_texts(index, tenant, "x"), index.count(tenant)) == ([], 0)
    assert index_texts(index, document, 3, "three"), "restored"
    assert found_texts(index, tenant, "x") == ["three"]


def test_newest_revision_wins_among_concurrent_writers(index: PassageIndex, tenant: str) -> None:
    document = DocumentRef(tenant, "c", "1")
    revisions = list(range(1, 25))
    random.Random(7).shuffle(revisions)
    with ThreadPoolExecutor(8) as threads:
        done = list(
            threads.map(
                lambda r: index_texts(index, document, r, *[f"{r} of {n}" for n in range(r % 5 + 1)]), revisions
            )
        )
    assert done[revisions.index(24)]
    assert sorted(found_texts(index, tenant, "x", top_k=50)) == [f"24 of {number}" for number in range(5)]


def test_index_folder_is_locked_and_durable(e5: E5, tmp_path: Path, tenant: str) -> None:
    first = EmbeddedVectorStore(E5_SMALL, str(tmp_path))
    index_texts(PassageIndex(e5, first), DocumentRef(tenant, "c", "1"), 1, "kept")
    with pytest.raises(FolderLocked):
        EmbeddedVectorStore(E5_SMALL, str(tmp_path))
    first.close()
    again = EmbeddedVectorStore(E5_SMALL, str(tmp_path))
    assert found_texts(PassageIndex(e5, again), tenant, "x") == ["kept"]
    again.close()


def test_vectors_of_another_model_are_rejected(tmp_path: Path) -> None:
    EmbeddedVectorStore(E5_SMALL, str(tmp_path)).close()
    for other in (
        replace(E5_SMALL, model="another"),
        replace(E5_SMALL, dimensions=385),
        replace(E5_SMALL, question_prefix=""),
    ):
        with pytest.raises(ConfigurationError, match="was made with"):
            EmbeddedVectorStore(other, str(tmp_path))
    EmbeddedVectorStore(E5_SMALL, str(tmp_path)).close()


def test_acknowledged_writes_survive_a_kill(e5: E5, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.helpers.index_writer", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]) as writer:
        assert writer.stdout
        acknowledged = [writer.stdout.readline().strip() for _ in range(60)]
        os.kill(writer.pid, signal.SIGKILL)
        acknowledged += writer.stdout.read().split()
    store = EmbeddedVectorStore(E5_SMALL, str(tmp_path))
    index = PassageIndex(e5, store)
    assert all(index._version(DocumentRef("t", "c", each)) == 2 for each in acknowledged)
    assert index.count("t") >= len(acknowledged)
    assert found_texts(index, "t", f"note {acknowledged[-1]}")[0] == f"note {acknowledged[-1]}"
    assert index_texts(index, DocumentRef("t", "c", "after"), 1, "writing goes on")
    store.close()


def test_search_during_writes_and_optimization(
    e5: E5, tmp_path: Path, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infra.local.search_engine.embedded._OPTIMIZE_AFTER", 40)
    store = EmbeddedVectorStore(E5_SMALL, str(tmp_path))
    index = PassageIndex(e5, store)
    index_texts(index, DocumentRef(tenant, "c", "0"), 1, TEXTS[0])
    finished = threading.Event()

    def asking() -> int:
        queries = 0
        while not finished.is_set() or not queries:
            assert found_texts(index, tenant, "doi tuyen bong da")[0] == TEXTS[0]
            queries += 1
        return queries

    with ThreadPoolExecutor(4) as threads:
        askers = [threads.submit(asking) for _ in range(2)]
        writes = list(
            threads.map(
                lambda number: index_texts(index, DocumentRef(tenant, "c", f"n{number}"), 1, f"note {number}"),
                range(120),
            )
        )
        finished.set()
        assert all(asker.result() for asker in askers)
    assert all(writes)
    assert index.count(tenant) == 121
    store.close()
