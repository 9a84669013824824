"""Results of hybrid search, their order, and their tenants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from shared.rpc.errors import Unavailable
from shared.search.hybrid_search import HybridSearch
from shared.search.index import PassageIndex
from shared.search.passages import DocumentRef, Passage, SearchQuestion
from shared.search.store import Scope
from tests.helpers.passages import TEXTS, found_texts, index_texts, search_hits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infra.local.search_engine.embedded import EmbeddedVectorStore
    from shared.search.embedding.e5 import E5
    from shared.search.store import VectorQuery


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
def test_search_across_languages_and_without_diacritics(
    index: PassageIndex, library: str, question: str, answer: int
) -> None:
    assert found_texts(index, library, question)[0] == TEXTS[answer]


def test_query_without_diacritics_ranks_like_one_with(index: PassageIndex, library: str) -> None:
    (bare, *_), (accented, *_) = (
        search_hits(index, library, text) for text in ("bong da viet nam vo dich", "bóng đá việt nam vô địch")
    )
    assert bare.passage == accented.passage
    assert bare.similarity == pytest.approx(accented.similarity, abs=0.02)


def test_search_without_late_interaction(e5: E5, store: EmbeddedVectorStore, library: str) -> None:
    index = PassageIndex(e5, store, HybridSearch(e5, store, parts=False))
    assert found_texts(index, library, "doi tuyen bong da vo dich nam nao")[0] == TEXTS[0]
    assert found_texts(index, library, "When did Vietnam win the championship?")[0] == TEXTS[0]
    assert found_texts(index, library, "máy tính lượng tử hoạt động thế nào")[0] == TEXTS[2]


def test_scores_are_between_zero_and_one(index: PassageIndex, library: str) -> None:
    answers = search_hits(index, library, "ca phe sua da o Sai Gon")
    assert [hit.score for hit in answers] == sorted((hit.score for hit in answers), reverse=True)
    assert all(0 <= share <= 1 for hit in answers for share in (hit.score, hit.similarity, hit.overlap))
    assert answers[0].overlap == pytest.approx(1)
    assert answers[0].score > 2 * answers[1].score


def test_query_without_known_words(index: PassageIndex, library: str) -> None:
    assert search_hits(index, library, "?!") == []
    assert all(hit.overlap == 0 for hit in search_hits(index, library, "xyzzy"))


def test_a_long_question_is_answered(index: PassageIndex, library: str) -> None:
    assert found_texts(index, library, " ".join(f"từ{number}" for number in range(400)) + TEXTS[4])


def test_top_k_limits_results(index: PassageIndex, library: str) -> None:
    assert [len(found_texts(index, library, "light", top_k=count)) for count in (1, 3, 6, 50)] == [1, 3, 6, 6]


def test_search_returns_the_requested_number(index: PassageIndex, tenant: str) -> None:
    index_texts(index, DocumentRef(tenant, "c", "1"), 1, *(f"Number {number}." for number in range(100)))
    assert len(found_texts(index, tenant, "xyzzy", top_k=100)) == 100


def test_empty_index_returns_nothing(index: PassageIndex, tenant: str) -> None:
    assert found_texts(index, tenant, "light") == []
    assert found_texts(index, tenant, "light", context="what I write") == []


def test_document_context_affects_the_ranking(index: PassageIndex, tenant: str) -> None:
    passages = ["A python is a large snake that swallows its prey.", "Python is a language; import a module to use it."]
    for number, text in enumerate(passages):
        index_texts(index, DocumentRef(tenant, "c", str(number)), 1, text)
    for number, context in enumerate(["Reptiles of Asia: what snakes eat.", "def main(): parse the source code"]):
        assert found_texts(index, tenant, "python", context=context)[0] == passages[number]


def test_headings_and_title_are_searchable(index: PassageIndex, tenant: str) -> None:
    index_texts(
        index, DocumentRef(tenant, "c", "1"), 1, "Set it to 30.", title="Gateway", heading_path=("Timeouts", "Upstream")
    )
    index_texts(index, DocumentRef(tenant, "c", "2"), 1, "Set it to 40.", title="Database", heading_path=("Backups",))
    assert found_texts(index, tenant, "upstream timeout of the gateway")[0] == "Set it to 30."


def test_very_long_title_does_not_hide_the_text(index: PassageIndex, tenant: str) -> None:
    title = "Everything there is to know about watering, sowing and mowing. " * 1000
    index_texts(
        index,
        DocumentRef(tenant, "c", "1"),
        1,
        "Ferns like shade.",
        "The tractor's oil is changed in May.",
        title=title,
    )
    (first, _) = search_hits(index, tenant, "when is the oil of the tractor changed")
    assert first.passage.text.startswith("The tractor")
    assert first.passage.title == title
    assert len(first.passage.searchable_text) < 400


def test_passage_round_trip(index: PassageIndex, tenant: str) -> None:
    document = DocumentRef(tenant, "c", "1")
    passage = Passage(
        document, 3, "a\0b \ud7ff", 7, "title", "a.md", ("One", "Two"), "table", ("p", "q"), {"deep": [1, {"x": None}]}
    )
    assert index.replace(document, 7, [passage])
    assert search_hits(index, tenant, "title")[0].passage == passage


def test_all_tags_must_match(index: PassageIndex, tenant: str) -> None:
    index_texts(index, DocumentRef(tenant, "c", "1"), 1, "first", tags=("p", "q"))
    index_texts(index, DocumentRef(tenant, "c", "2"), 1, "second", tags=("p",))
    assert sorted(found_texts(index, tenant, "x", tags=("p",))) == ["first", "second"]
    assert found_texts(index, tenant, "x", tags=("p", "q")) == ["first"]


def test_beginning_of_a_document_ranks_its_later_passages(index: PassageIndex, tenant: str) -> None:
    """Of two equal passages, the one in the document on the question's subject comes first."""
    for name, subject in (("a", "Sourdough bread and its crust"), ("b", "Bicycles: brakes, chains and wheels")):
        document = DocumentRef(tenant, "c", name)
        index_texts(index, document, 1, subject, "Check it once a month, and replace worn parts.")
    question = "how often must the brakes of a bicycle be checked?"
    hits = [hit for hit in search_hits(index, tenant, question) if hit.passage.ordinal]
    assert [hit.passage.document.document_id for hit in hits] == ["b", "a"]
    assert hits[0].similarity == pytest.approx(hits[1].similarity)


def test_words_in_different_passages_of_a_document_add_up(index: PassageIndex, tenant: str) -> None:
    """A document counts for all its words: of two equal passages, that of the document with the rest comes first."""
    same = "The committee met in the town hall."
    index_texts(index, DocumentRef(tenant, "c", "a"), 1, same, "The minutes have nothing else about it at all.")
    index_texts(index, DocumentRef(tenant, "c", "b"), 1, same, "The zeppelin was paid for by Quirke.")
    best = search_hits(index, tenant, "committee zeppelin Quirke", rerank=False)
    scores = {hit.passage.document.document_id: hit.score for hit in best if hit.passage.text == same}
    assert scores["b"] > scores["a"] + 0.01
    matches = {
        part.value
        for hit in best
        if hit.passage.document.document_id == "b"
        for part in hit.parts
        if "doc" in part.name
    }
    assert len(matches) == 1, "all passages of a document have its words"


def test_documents_of_an_earlier_version_are_ranked_by_their_passages(
    index: PassageIndex, store: EmbeddedVectorStore, tenant: str
) -> None:
    """Until `kho reindex`, a document without a count of its words is found as before, among those that have it."""
    for number in range(2):
        index_texts(index, DocumentRef(tenant, "c", str(number)), 1, f"The zeppelin flew over {number + 7} towns.")
    with_counts = {hit.passage.id: hit.score for hit in search_hits(index, tenant, "zeppelin")}
    store.erase(Scope(tenant, ("c#words",), "0"))
    for hit in search_hits(index, tenant, "zeppelin"):
        assert hit.score == pytest.approx(with_counts[hit.passage.id], abs=0.03)
    store.erase(Scope(tenant, kind="words"))
    assert len(search_hits(index, tenant, "zeppelin")) == 2


def test_path_of_a_document_is_found(index: PassageIndex, tenant: str) -> None:
    for path in ("garden/shade/x1.md", "garden/sun/x2.md"):
        index_texts(index, DocumentRef(tenant, "c", path), 1, "Water it daily.", source=path)
    assert search_hits(index, tenant, "shade")[0].passage.source == "garden/shade/x1.md"


def test_reranker_reorders_and_may_fail(e5: E5, store: EmbeddedVectorStore, library: str) -> None:
    class Prefers:
        def scores(self, question: str, texts: Sequence[str]) -> list[float]:
            if question == "fail":
                raise Unavailable
            return [float("seafood" in text) for text in texts]

    index = PassageIndex(e5, store, HybridSearch(e5, store, reranker=Prefers()))
    assert found_texts(index, library, "xyzzy")[0] == TEXTS[1]
    assert found_texts(index, library, "xyzzy", rerank=False) == found_texts(
        PassageIndex(e5, store, HybridSearch(e5, store, parts=False)), library, "xyzzy"
    )
    assert found_texts(index, library, "fail")


def test_search_takes_few_requests(e5: E5, store: EmbeddedVectorStore, library: str) -> None:
    """Candidates found by words are compared with the question by the request that searches by meaning."""
    requests: list[int] = []

    class Counted:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def search(self, queries: Sequence[VectorQuery]) -> list[dict[str, float]]:
            requests.append(len(queries))
            return store.search(queries)

    counted: Any = Counted()
    assert found_texts(PassageIndex(e5, counted), library, "seafood")[0] == TEXTS[1]
    words, meaning, comparison = requests
    assert (words, meaning, comparison) == (3, 2, 1)


def test_candidates_are_filtered_before_reranking(e5: E5, store: EmbeddedVectorStore, library: str) -> None:
    scored: list[str] = []

    class Reads:
        def scores(self, question: str, texts: Sequence[str]) -> list[float]:
            assert (question, sorted(scored)) == ("light", sorted(texts))
            return [0.5] * len(texts)

    index = PassageIndex(e5, store, HybridSearch(e5, store, reranker=Reads()))
    question = SearchQuestion("light", library, ("c",), top_k=3)
    candidates = index.candidates(question)
    scored += [each.text for each in candidates.passages.values()]
    assert {each.passage.text for each in index.rank(candidates).hits} < set(scored) == set(TEXTS)


def test_passage_deleted_during_search_is_not_reranked(e5: E5, store: EmbeddedVectorStore, library: str) -> None:
    class Emptied:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def read_with_terms(self, ids: Sequence[str], numbers: Sequence[int]) -> dict[str, Any]:
            assert ids
            assert numbers
            return {}

        def search(self, asks: Sequence[VectorQuery]) -> list[dict[str, float]]:
            assert all(ask.limit for ask in asks), "a server refuses to look for nothing"
            return store.search(asks)

    emptied: Any = Emptied()
    assert search_hits(PassageIndex(e5, emptied), library, "light") == []


def test_fifty_tenants_in_one_collection_are_isolated(index: PassageIndex, tenant: str) -> None:
    tenants = [f"{tenant}-{number}" for number in range(50)]
    for number, each in enumerate(tenants):
        index_texts(index, DocumentRef(each, "c", "same"), 1, f"The secret number is {number}.", "The red fox sleeps.")
    for number, each in enumerate(tenants):
        assert sorted(found_texts(index, each, "secret number", top_k=100)) == [
            "The red fox sleeps.",
            f"The secret number is {number}.",
        ]
        assert index.count(each) == index.count(each, "c") == 2


def test_scores_are_independent_of_other_tenants_and_collections(
    index: PassageIndex, tenant: str, library: str
) -> None:
    question = "Kubernetes pods and seafood"
    before = search_hits(index, library, question)
    for number in range(20):
        index_texts(
            index, DocumentRef(f"{tenant}-other", "c", str(number)), 1, "Kubernetes pods and seafood, again and again"
        )
        index_texts(
            index, DocumentRef(library, "other", str(number)), 1, "Kubernetes pods and seafood, again and again"
        )
    assert search_hits(index, library, question) == before


def test_deleting_a_collection_or_tenant_keeps_the_rest(index: PassageIndex, tenant: str) -> None:
    other = f"{tenant}-other"
    for owner, collection in ((tenant, "c"), (tenant, "d"), (other, "c")):
        index_texts(index, DocumentRef(owner, collection, "1"), 1, "text")
    index.delete_collection(tenant, "c")
    assert [index.count(tenant, "c"), index.count(tenant, "d"), index.count(other)] == [0, 1, 1]
    assert index_texts(index, DocumentRef(tenant, "c", "1"), 1, "text"), "a collection may come back under its name"
    index.delete_tenant(tenant)
    assert [index.count(tenant), index.count(other)] == [0, 1]
