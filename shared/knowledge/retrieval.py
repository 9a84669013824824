"""One search: candidates by meaning and by words, one score for both, a closer look at the best."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from shared.aside import within
from shared.knowledge.accents import lacks_accents, restored
from shared.knowledge.fusion import Rarity, fused, likeness, likeness_of_parts, rarity
from shared.knowledge.lexical import Terms, question_terms
from shared.knowledge.passages import Hit, Passage, Question
from shared.knowledge.store import Ask, Scope
from shared.rpc.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shared.knowledge.embedding import Embedder, Embedding, RemoteText, Vector
    from shared.knowledge.reranking import Reranker
    from shared.knowledge.store import VectorStore

    _Side = tuple[dict[str, float], Vector | RemoteText | Terms, Scope | None]
    """What is known of the candidates on one side, what it is asked, and among whose words."""

_CANDIDATES: Final = 100
_NEARBY: Final = 25
_LOOKED_AT: Final = 20
_WORDS: Final = 256
_FAMILIAR: Final = 0.5
"""From this share of its words found in one passage on, a question is taken to be in that passage's language."""
_SPELLING: Final = 5


Measure = Literal["meaning", "parts", "model"]
"""What the similarity of hits was measured by: whole meanings, their parts, or a reranking model."""
Missing = Literal["out_of_time", "unavailable"]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The hits of a search, and why there was no closer look at them, where there was to be one."""

    hits: list[Hit]
    measure: Measure
    missing: Missing | None = None


@dataclass(slots=True)
class _Candidates:
    """What is known of the passages that may answer: cosines, BM25 scores, cosines to the asker's own document."""

    meaning: dict[str, float]
    words: dict[str, float]
    context: dict[str, float] = field(default_factory=dict)
    rarity: Rarity = field(default_factory=lambda: Rarity({}))
    coverage: float = 0.0


class Retriever:
    """Searches one store with one embedder."""

    def __init__(
        self, embedder: Embedder, store: VectorStore, *, parts: bool | None = None, reranker: Reranker | None = None
    ) -> None:
        self._embedder = embedder
        self._store = store
        self._parts = embedder.space.tokens if parts is None else parts
        self._reranker = reranker

    def rank(self, question: Question, until: float = math.inf) -> Ranking:
        """The passages that answer `question` best, best first; no closer look at them is waited for after `until`."""
        scope = Scope(
            question.tenant_id, question.collections, kind="passage", tags=question.tags, without=question.without
        )
        asked = self._embedder.question(question.text)
        context = self._embedder.question(question.context) if question.context.strip() else None
        terms = _limited(question_terms(question.text))
        found = self._candidates(asked, context, terms, scope)
        if found.coverage >= _FAMILIAR and lacks_accents(question.text):
            spelled = self._spelled(question.text, found)
            if spelled != question.text:
                asked = self._embedder.question(spelled)
                found = self._candidates(asked, context, terms, scope)
        similarity = {id_: likeness(cosine, self._embedder.space) for id_, cosine in found.meaning.items()}
        best = self._ranked(found, similarity)[: max(_LOOKED_AT, question.top_k)]
        measure = self._measure(asked) if question.rerank and best else "meaning"
        missing: Missing | None = None
        if measure != "meaning":
            ids = [id_ for id_, _ in best]
            try:
                looked = within(until - time.monotonic(), lambda: self._closer(asked, question, ids, scope))
                similarity |= looked
                best = self._ranked(found, {id_: similarity[id_] for id_ in ids})
            except TimeoutError:
                measure, missing = "meaning", "out_of_time"
            except Unavailable:
                measure, missing = "meaning", "unavailable"
        return Ranking(self._hits(best[: question.top_k], found, similarity), measure, missing)

    def _measure(self, asked: Embedding) -> Measure:
        if self._reranker:
            return "model"
        return "parts" if self._parts and asked.tokens else "meaning"

    def _spelled(self, text: str, found: _Candidates) -> str:
        """The question with its accents, without which no model understands it."""
        best = sorted(found.words, key=found.words.__getitem__, reverse=True)[:_SPELLING]
        return restored(text, [passage.searchable for passage in self._passages(best).values()])

    def _candidates(self, asked: Embedding, context: Embedding | None, terms: Terms, scope: Scope) -> _Candidates:
        # How rare a word is, is a matter of the whole of the collections: not of what bears certain tags.
        among = replace(scope, tags=(), without=())
        asks = [Ask(asked.vector, scope, _CANDIDATES)]
        asks += [Ask(context.vector, scope, _NEARBY)] if context else []
        asks += [Ask(terms, scope, _CANDIDATES, among)] if terms.numbers else []
        asks += [Ask(Terms([number], [1.0]), among, 1, among) for number in terms.numbers]
        answers = iter(self._store.search(asks))
        meaning = next(answers)
        nearby = next(answers) if context else {}
        words = next(answers) if terms.numbers else {}
        singly = {number: next(answers) for number in terms.numbers}
        candidates = _Candidates(meaning, words, nearby)
        self._complete(candidates, asked, context, terms, scope)
        self._weigh(candidates, terms, singly, among)
        return candidates

    def _complete(
        self, found: _Candidates, asked: Embedding, context: Embedding | None, terms: Terms, scope: Scope
    ) -> None:
        """Learn what each side knows of the candidates of the others."""
        ids = {**found.meaning, **found.context, **found.words}
        among = replace(scope, tags=(), without=())
        sides: list[tuple[dict[str, float], Vector | RemoteText | Terms, Scope | None]] = [
            (found.meaning, asked.vector, None)
        ]
        sides += [(found.context, context.vector, None)] if context else []
        sides += [(found.words, terms, among)] if terms.numbers else []
        asks, asking = [], []
        for scores, near, corpus in sides:
            unknown = tuple(id_ for id_ in ids if id_ not in scores)
            if unknown:
                asks.append(Ask(near, replace(scope, ids=unknown), len(unknown), corpus))
                asking.append(scores)
        for scores, answer in zip(asking, self._store.search(asks) if asks else (), strict=True):
            scores.update(answer)

    def _weigh(self, found: _Candidates, terms: Terms, singly: dict[int, dict[str, float]], among: Scope) -> None:
        """Learn how rare each word is, from one passage that holds it."""
        holders = {number: next(iter(scores.items())) for number, scores in singly.items() if scores}
        best = max(found.words, key=found.words.__getitem__, default=None)
        held = self._store.terms(list({*(id_ for id_, _ in holders.values()), *([best] if best else [])}))
        known = {
            number: (score, held[id_][number])
            for number, (id_, score) in holders.items()
            if number in held.get(id_, {})  # else deleted since
        }
        found.rarity = rarity(terms, known, self._store.count(among) if len(known) < len(terms.numbers) else 0)
        found.coverage = found.rarity.overlap(held.get(best, {})) if best else 0.0

    def _ranked(self, found: _Candidates, similarity: dict[str, float]) -> list[tuple[str, float]]:
        scores = {
            id_: fused(
                alike,
                found.rarity.strength(found.words.get(id_, 0.0)),
                found.coverage,
                likeness(found.context[id_], self._embedder.space) if id_ in found.context else None,
            )
            for id_, alike in similarity.items()
        }
        return sorted(scores.items(), key=lambda scored: (-scored[1], scored[0]))

    def _closer(self, asked: Embedding, question: Question, ids: list[str], scope: Scope) -> dict[str, float]:
        """How alike those of `ids` are to the question, read closely, or `Unavailable`."""
        if self._reranker:
            texts = {id_: passage.searchable for id_, passage in self._passages(ids).items()}
            return dict(zip(texts, self._reranker.scores(question.text, list(texts.values())), strict=True))
        assert asked.tokens
        (sums,) = self._store.search([Ask(asked.tokens, replace(scope, ids=tuple(ids)), len(ids))])
        return {id_: self._alike(total, asked.tokens) for id_, total in sums.items()}

    def _alike(self, total: float, parts: list[Vector]) -> float:
        return likeness_of_parts(total / len(parts), self._embedder.space)

    def _hits(self, best: list[tuple[str, float]], found: _Candidates, similarity: dict[str, float]) -> list[Hit]:
        ids = [id_ for id_, _ in best]
        passages = self._passages(ids)
        terms = self._store.terms(ids)
        return [
            Hit(passages[id_], score, similarity[id_], found.rarity.overlap(terms.get(id_, {})))
            for id_, score in best
            if id_ in passages  # else deleted since
        ]

    def _passages(self, ids: Iterable[str]) -> dict[str, Passage]:
        payloads = self._store.read(list(ids))
        return {id_: Passage.from_record(payloads[id_]["passage"]) for id_ in ids if id_ in payloads}


def _limited(terms: Terms) -> Terms:
    return Terms(terms.numbers[:_WORDS], terms.weights[:_WORDS])
