"""A hundred thousand experiences: a query compared with plain searches of the same vectors; secret scanning."""

from __future__ import annotations

import random
import tempfile
import time
import zlib
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from infra.local.search_engine.embedded import EmbeddedVectorStore
from shared.experiences.ranking import RELEVANCE_FLOOR, ExperienceMatch, month_end, rank
from shared.experiences.secret_scanner import find_secrets
from shared.search.bm25 import question_terms
from shared.search.embedding import Embedding
from shared.search.embedding.e5 import E5
from shared.search.embedding.models import E5_SMALL
from shared.search.exhaustive_search import ExhaustiveSearch
from shared.search.store import Point, Scope, VectorQuery
from tests.data.secret_corpus.code import CODE
from tests.data.secret_corpus.safe import PROSE, TECHNICAL
from tests.suites.bench.size import sized
from tests.suites.bench.tables import BenchTable, Timing, ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from shared.search.embedding import Embedder
    from shared.search.embedding.models import Space
    from shared.search.store import VectorStore

Numbers = npt.NDArray[np.float64]

EXPERIENCES: Final = sized(1_000, full=100_000)
A_TOPIC: Final = 50
"""So many experiences are about the same thing, and match a question about it."""
QUESTIONS: Final = sized(5, full=300)
SCANS: Final = sized(2, full=200)
VOCABULARY: Final = 5_000
TOGETHER: Final = 1_000
TENANT: Final = "#everyone"
COLLECTION: Final = "bench"
YEARS: Final = 3 * 365 * 24 * 3600


class WordSumEmbedder:
    """An embedder whose vectors are sums of one a word, about as far from each other as e5's."""

    space: Space = replace(E5_SMALL, tokens=False)

    def __init__(self) -> None:
        self._common = _direction(0)

    def passages(self, texts: Sequence[str]) -> list[Embedding]:
        """Return the vectors of passages."""
        return [self.question(text) for text in texts]

    def question(self, text: str) -> Embedding:
        """Return the vector of a question."""
        said = np.sum([_direction(zlib.crc32(word.encode())) for word in text.split()], axis=0)
        return Embedding(_unit(0.86 * self._common + 0.5 * _unit(said)).tolist())

    def prepare_question(self, text: str) -> Callable[[], Embedding]:
        """Return the function that embeds a question."""
        return partial(self.question, text)


class Paid(WordSumEmbedder):
    """The same vectors, after e5 has read the question."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__()
        self._embedder = embedder

    def question(self, text: str) -> Embedding:
        self._embedder.question(text)
        return super().question(text)


def tables() -> list[BenchTable]:
    """Measure queries and the secret scanner."""
    with _store() as store:
        _fill(store)
        return [_queries(store, ExhaustiveSearch(WordSumEmbedder(), store, COLLECTION)), _secrets()]


def _fill(store: EmbeddedVectorStore) -> None:
    shelf = _Shelf(store)
    matcher = ExhaustiveSearch(WordSumEmbedder(), shelf, COLLECTION)
    draw = random.Random(1)
    for number in range(EXPERIENCES):
        topic = draw.randrange(EXPERIENCES // A_TOPIC)
        text = " ".join([*_topic(topic), *(_word(draw) for _ in range(12))])
        payload = {"id": str(number), "created": time.time() - draw.randrange(YEARS), "query_count": _count(draw)}
        matcher.put(str(number), text, 1, payload, 0)
    shelf.flush()
    _settled(store)


class _Shelf:
    """The store while it is filled by one writer: many points at a time, and nothing to replace."""

    def __init__(self, store: EmbeddedVectorStore) -> None:
        self._store = store
        self._points: dict[int, list[Point]] = {}

    def write(self, points: Sequence[Point], version: int) -> None:
        """Keep `points` for later."""
        self._points.setdefault(version, []).extend(points)
        if len(self._points[version]) >= TOGETHER:
            self._store.write(self._points.pop(version), version)

    def flush(self) -> None:
        """Write what is left."""
        for version, points in self._points.items():
            self._store.write(points, version)

    def erase(self, _: Scope) -> None:
        """There is nothing older."""

    def read(self, *_: Any) -> dict[str, dict[str, Any]]:
        """There is nothing yet."""
        return {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def _queries(store: VectorStore, matcher: ExhaustiveSearch) -> BenchTable:
    draw = random.Random(2)
    questions = [" ".join(_topic(draw.randrange(EXPERIENCES // A_TOPIC))[:5]) for _ in range(QUESTIONS)]
    cheap, paid = WordSumEmbedder(), ExhaustiveSearch(Paid(E5()), store, COLLECTION)
    vectors = {question: cheap.question(question).vector for question in questions}
    scope = Scope(TENANT, (COLLECTION,), kind="passage")

    def plain(question: str, limit: int) -> int:
        (found,) = store.search([VectorQuery(vectors[question], scope, limit)])
        return len(store.read(list(found)))

    def both(question: str, limit: int) -> int:
        asks = [VectorQuery(vectors[question], scope, limit), VectorQuery(question_terms(question), scope, limit)]
        return sum(len(store.read(list(found))) for found in store.search(asks))

    ways: dict[str, Callable[[str], int]] = {
        "Qdrant, by meaning, the best 10": lambda question: plain(question, 10),
        "Qdrant, by meaning, the best 128": lambda question: plain(question, 128),
        "Qdrant, by meaning and words, the best 128 of each": lambda question: both(question, 128),
        "Kho: all that matches, ranked": lambda question: len(_ranked(matcher, question)),
        "Kho, e5 reading the question": lambda question: len(_ranked(paid, question)),
    }
    samples: dict[str, list[float]] = {name: [] for name in ways}
    found: dict[str, list[int]] = {name: [] for name in ways}
    for question in questions:
        order = list(ways.items())
        draw.shuffle(order)
        for name, way in order:
            started = time.perf_counter()
            found[name].append(way(question))
            samples[name].append(time.perf_counter() - started)
    timings = {name: Timing(each) for name, each in samples.items()}
    base = timings["Qdrant, by meaning and words, the best 128 of each"]
    rows = [
        [name, ms(timing.p50), ms(_p90(timing)), f"{timing.p50 / base.p50:.2f}", f"{sum(found[name]) / QUESTIONS:.0f}"]
        for name, timing in timings.items()
    ]
    return BenchTable(
        f"A query among {EXPERIENCES:,} experiences, compared with plain searches of the same vectors",
        ["", "p50", "p90", "ratio of p50", "found"],
        rows,
        [
            f"{QUESTIONS} questions, each in every way, in random order. The vectors are cheap substitutes; e5 reads "
            "the question too. Kho looks for all that matches, however much, and puts it in the order of the "
            "formula. The promises: under twice the plain search of both kinds; with e5 far under 2 s."
        ],
    )


def _ranked(matcher: ExhaustiveSearch, question: str) -> list[ExperienceMatch]:
    matches = [
        ExperienceMatch(
            each.payload["id"], round(each.relevance, 4), int(each.payload["query_count"]), each.payload["created"]
        )
        for each in matcher.search(question, RELEVANCE_FLOOR)
    ]
    return rank(matches, month_end(datetime.now(UTC)))


def _secrets() -> BenchTable:
    texts = {"prose in three languages": PROSE, "code, logs and settings": CODE, "hashes, versions, times": TECHNICAL}
    long = {name: _filled("\n".join(lines)) for name, lines in texts.items()}
    timed = {name: Timing([_processor_time(text) for _ in range(SCANS)]) for name, text in long.items()}
    return BenchTable(
        "Looking for secrets in 10 KB",
        ["", "p50", "p99"],
        [[name, ms(timing.p50), ms(timing.p99)] for name, timing in timed.items()],
        ["Processor time. The promise: under 5 ms."],
    )


def _processor_time(text: str) -> float:
    started = time.process_time()
    find_secrets(text)
    return time.process_time() - started


def _filled(text: str) -> str:
    """10 KB of `text`, over and over."""
    repeated = text * (10_240 // len(text.encode()) + 1)
    return repeated.encode()[:10_240].decode("utf-8", "ignore")


def _topic(number: int) -> list[str]:
    draw = random.Random(number)
    return [_word(draw) for _ in range(8)]


def _word(draw: random.Random) -> str:
    return f"word{draw.randrange(VOCABULARY)}"


def _count(draw: random.Random) -> int:
    return int(draw.paretovariate(0.8)) % 100_000


@cache
def _direction(seed: int) -> Numbers:
    return _unit(np.random.default_rng(seed).normal(size=WordSumEmbedder.space.dimensions))


def _unit(vector: Numbers) -> Numbers:
    return np.divide(vector, np.linalg.norm(vector))


def _p90(timing: Timing) -> float:
    return sorted(timing.samples)[int(len(timing.samples) * 0.9)]


@contextmanager
def _store() -> Iterator[EmbeddedVectorStore]:
    with tempfile.TemporaryDirectory(prefix="kho-bench-") as folder:
        store = EmbeddedVectorStore(WordSumEmbedder.space, folder)
        try:
            yield store
        finally:
            store.close()


def _settled(store: EmbeddedVectorStore) -> None:
    """Wait until everything is in the graph."""
    while store._optimizing.locked():
        time.sleep(0.1)
    store._shard.flush()
    store._shard.optimize()
