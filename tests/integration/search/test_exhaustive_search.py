"""Exhaustive search finds every match in either list, like a full scan."""

from __future__ import annotations

import random
import zlib
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infra.local.search_engine.embedded import EmbeddedVectorStore
from shared.search import exhaustive_search
from shared.search.bm25 import question_terms
from shared.search.embedding import Embedding
from shared.search.embedding.models import E5_SMALL
from shared.search.exhaustive_search import ExhaustiveSearch
from shared.search.store import Scope, VectorQuery
from tests.helpers.size import sized

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ENTRIES = sized(300, full=1500)
TOPICS = 12
WORDS = [f"word{number}" for number in range(30)]
SPACE = replace(E5_SMALL, tokens=False)


class StandIn:
    """An embedder that treats texts as similar if they begin with the same topic."""

    space = SPACE

    def passages(self, texts: Sequence[str]) -> list[Embedding]:
        return [self.question(text) for text in texts]

    def question(self, text: str) -> Embedding:
        topic, own = (random.Random(zlib.crc32(part.encode())) for part in (text.split(maxsplit=1)[0], text))
        raw = [5 + topic.gauss(0, 2) + own.gauss(0, 1.3) for _ in range(SPACE.dimensions)]
        length = sum(each * each for each in raw) ** 0.5
        return Embedding([each / length for each in raw])

    def prepare_question(self, text: str) -> Callable[[], Embedding]:
        return partial(self.question, text)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedVectorStore]:
    opened = EmbeddedVectorStore(SPACE, str(tmp_path_factory.mktemp("matching")))
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def _steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce the search steps to the small number of entries."""
    monkeypatch.setattr(exhaustive_search, "_FIRST_PAGE", sized(26, full=128))
    monkeypatch.setattr(exhaustive_search, "_GRAPH_LIMIT", sized(204, full=1024))


@pytest.fixture(scope="module")
def matcher(shelf: EmbeddedVectorStore) -> ExhaustiveSearch:
    """Index many entries, each of a topic, with some frequent and some rare words."""
    search = ExhaustiveSearch(StandIn(), shelf, "entries")
    chosen = random.Random(7)
    for number in range(ENTRIES):
        words = [word for place, word in enumerate(WORDS) if chosen.random() < 0.6 / (place + 1)]
        text = f"topic{number % TOPICS} {' '.join(words)} {number}"
        search.put(str(number), text, 1, {"id": number}, 0)
    return search


def looked_at(shelf: EmbeddedVectorStore, question: str, floor: float) -> dict[int, float]:
    """Return the matches by the definition in docs/experiences.md, from a full scan."""
    scope = Scope("#everyone", ("entries",), kind="passage")
    terms = question_terms(question)
    vector = StandIn().question(question).vector
    meaning, words = shelf.search([VectorQuery(vector, scope, ENTRIES, exact=True), VectorQuery(terms, scope, ENTRIES)])
    best = next(iter(words), None)
    coverage = 0.0
    if best:
        entry_terms = shelf.terms([best])[best]
        weights = dict(zip(terms.numbers, terms.weights, strict=True))
        share = sum(weight for number, weight in weights.items() if number in entry_terms) / sum(weights.values())
        coverage = share**2
    matches = {}
    payloads = shelf.read(list(meaning))
    for id_, cosine in meaning.items():
        alike = min(1.0, max(0.0, ((cosine - 0.7) / 0.3 if cosine < 1 else 1.0) * 2 - 0.5))
        strength = coverage * words.get(id_, 0.0) / words[best] if best else 0.0
        relevance = min(1.0, (alike + strength) / (1 + coverage))
        if relevance >= floor:
            matches[int(payloads[id_]["passage"]["document"]["document_id"])] = relevance
    return matches


@pytest.mark.stress
def test_exhaustive_search_equals_brute_force(
    matcher: ExhaustiveSearch, shelf: EmbeddedVectorStore, record_property: Callable[[str, object], None]
) -> None:
    """A question finds every entry above the floor of relevance and no other, as a full scan does."""
    questions_asked = sized(20, full=200)
    topics = st.integers(0, TOPICS + 2).map(lambda number: f"topic{number}")
    questions = st.tuples(topics, st.lists(st.sampled_from([*WORDS, "unheard"]), max_size=5)).map(
        lambda said: f"{said[0]} {' '.join(said[1])}"
    )

    @settings(max_examples=questions_asked, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(questions, st.sampled_from([0.1, 0.25, 0.5, 0.9]))
    def holds(question: str, floor: float) -> None:
        wanted = looked_at(shelf, question, floor)
        matches = {each.payload["id"]: each.relevance for each in matcher.search(question, floor)}
        unsure = {id_ for id_, relevance in wanted.items() if abs(relevance - floor) < 1e-5}
        assert matches.keys() - unsure == wanted.keys() - unsure
        assert all(abs(matches[id_] - wanted[id_]) < 1e-5 for id_ in matches if id_ in wanted)

    holds()
    record_property("load", f"{questions_asked} questions to {ENTRIES:,} entries")
    record_property("outcome", "0 missed, 0 too many")


def test_payload_version_never_decreases(matcher: ExhaustiveSearch) -> None:
    question = "topic0 word0 0"
    for version, words in ((5, 5), (3, 3), (5, 5), (7, 7), (6, 6)):
        matcher.set_payload("0", {"id": 0, "count": words}, version)
    payloads = [each.payload for each in matcher.search(question, 0.25)]
    assert {"id": 0, "count": 7} in payloads


def test_deleted_and_stale_entries_do_not_match(matcher: ExhaustiveSearch) -> None:
    matcher.put("gone", "topic99 unique", 4, {"id": -1}, 0)
    assert matcher.holds("gone", 4)
    assert matcher.payload("gone") == {"id": -1}
    assert [each.payload["id"] for each in matcher.search("topic99 unique", 0.5)] == [-1]
    matcher.delete("gone", 5)
    matcher.put("gone", "topic99 unique", 4, {"id": -1}, 0)
    assert matcher.search("topic99 unique", 0.5) == []
    assert not matcher.holds("gone", 4)
    assert matcher.payload("never kept") == {}


def test_near_duplicates_are_detected_by_vectors_and_words(matcher: ExhaustiveSearch) -> None:
    text = "topic5 the cache is cold after each deployment and answers are slow"
    for id_, words in (("one", text), ("other", f"topic5 {' '.join(WORDS)}")):
        matcher.put(id_, words, 1, {"id": id_}, 0)
    assert [each["id"] for each in matcher.near_duplicates("new", text)] == ["one"]
    assert matcher.near_duplicates("one", text) == []
