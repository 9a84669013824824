"""What is found, in which order, and whose it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from shared.knowledge.index import Index
from shared.knowledge.passages import Document, Passage, Question
from shared.knowledge.retrieval import Retriever
from shared.rpc.errors import Unavailable
from tests.integration.knowledge.shelf import TEXTS, found, hits, keep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.knowledge.embedding.e5 import E5
    from shared.knowledge.store import Ask
    from shared.knowledge.store.embedded import Embedded


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


def test_as_many_are_found_as_are_wanted(index: Index, tenant: str) -> None:
    keep(index, Document(tenant, "c", "1"), 1, *(f"Number {number}." for number in range(100)))
    assert len(found(index, tenant, "xyzzy", top_k=100)) == 100


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


def test_a_title_without_end_does_not_hide_the_text(index: Index, tenant: str) -> None:
    title = "Everything there is to know about watering, sowing and mowing. " * 1000
    keep(index, Document(tenant, "c", "1"), 1, "Ferns like shade.", "The tractor's oil is changed in May.", title=title)
    (first, _) = hits(index, tenant, "when is the oil of the tractor changed")
    assert first.passage.text.startswith("The tractor")
    assert first.passage.title == title
    assert len(first.passage.searchable) < 400


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


def test_what_may_be_found_is_told_before_it_is_looked_at_closer(e5: E5, store: Embedded, library: str) -> None:
    told: list[str] = []

    class Reads:
        def scores(self, question: str, texts: Sequence[str]) -> list[float]:
            assert (question, sorted(told)) == ("light", sorted(texts))
            return [0.5] * len(texts)

    index = Index(e5, store, Retriever(e5, store, reranker=Reads()))
    question = Question("light", library, ("c",), top_k=3)
    answers = index.search(question, lambda passages: told.extend(each.text for each in passages))
    assert {each.passage.text for each in answers} < set(told) == set(TEXTS)


def test_what_is_deleted_while_it_is_searched_is_not_looked_at_closer(e5: E5, store: Embedded, library: str) -> None:
    class Emptied:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def read(self, ids: Sequence[str], fields: Sequence[str] = ()) -> dict[str, Any]:
            assert ids
            assert not fields
            return {}

        def search(self, asks: Sequence[Ask]) -> list[dict[str, float]]:
            assert all(ask.limit for ask in asks), "a server refuses to look for nothing"
            return store.search(asks)

    emptied: Any = Emptied()
    assert hits(Index(e5, emptied), library, "light") == []


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
