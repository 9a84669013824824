"""One search: candidates by meaning and by words, one score for both, a closer look at the best."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from shared.background import run_with_timeout, submit
from shared.knowledge.bm25 import SparseTerms, question_terms
from shared.knowledge.diacritics import lacks_diacritics, restore_diacritics
from shared.knowledge.fusion import TermRarity, fused, likeness, likeness_of_parts, rarity
from shared.knowledge.passages import Passage, SearchHit, SearchQuestion
from shared.knowledge.store import Scope, VectorQuery
from shared.rpc.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from shared.knowledge.embedding import Embedder, Embedding, RemoteText, Vector
    from shared.knowledge.reranking import Reranker
    from shared.knowledge.store import VectorStore

_CANDIDATES: Final = 32
_NEARBY: Final = 25
_LOOKED_AT: Final = 20
_WORDS: Final = 256
_FAMILIAR: Final = 0.5
"""From this share of its words found in one passage on, a question is taken to be in that passage's language."""
_SPELLING: Final = 5


Measure = Literal["meaning", "parts", "model"]
"""What the similarity of hits was measured by: whole meanings, their parts, or a reranking model."""
MissingReranking = Literal["out_of_time", "unavailable"]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The hits of a search, and why there was no closer look at them, where there was to be one."""

    hits: list[SearchHit]
    measure: Measure
    missing: MissingReranking | None = None


@dataclass(frozen=True, slots=True)
class _SemanticCandidates:
    """What a question means, and the passages that mean the like: their cosines to it, and to the asker's document."""

    asked: Embedding
    context: Embedding | None
    scores: dict[str, float]
    nearby: dict[str, float]


@dataclass(frozen=True, slots=True)
class _KeywordCandidates:
    """The words of a question, and the passages that hold them: their BM25 scores."""

    terms: SparseTerms
    scores: dict[str, float]
    rarity: TermRarity
    coverage: float


class HybridSearch:
    """Searches one store with one embedder."""

    def __init__(
        self, embedder: Embedder, store: VectorStore, *, parts: bool | None = None, reranker: Reranker | None = None
    ) -> None:
        self._embedder = embedder
        self._store = store
        self._parts = embedder.space.tokens if parts is None else parts
        self._reranker = reranker

    def rank(
        self,
        question: SearchQuestion,
        until: float = math.inf,
        told: Callable[[Iterable[Passage]], None] = lambda _: None,
    ) -> Ranking:
        """The passages that answer `question` best, best first; no closer look at them is waited for after `until`.

        `told` hears of all that may be among them before that look is taken.
        """
        scope = Scope(
            question.tenant_id, question.collections, kind="passage", tags=question.tags, without=question.without
        )
        # Neither side needs the other: the words are looked up while the question is embedded.
        asking, wanted = self._embedder.asking(question.text), max(_CANDIDATES, question.top_k)
        meaning = submit(lambda: self._by_meaning(asking(), question.context, scope, wanted))
        words = self._by_words(_limited(question_terms(question.text)), scope, wanted)
        spelled = self._spelled(question.text, words)
        meant = meaning.result()
        if spelled != question.text:
            meant = self._by_meaning(self._embedder.question(spelled), question.context, scope, wanted)
        self._complete(meant, words, scope)
        similarity = {id_: likeness(cosine, self._embedder.space) for id_, cosine in meant.scores.items()}
        best = self._ranked(meant, words, similarity)[: max(_LOOKED_AT, question.top_k)]
        passages = self._passages(id_ for id_, _ in best)
        told(passages.values())
        measure = self._measure(meant.asked) if question.rerank and passages else "meaning"
        missing: MissingReranking | None = None
        if measure != "meaning":
            try:
                looked = run_with_timeout(
                    until - time.monotonic(), lambda: self._closer(meant.asked, question, passages, scope)
                )
                similarity |= looked
                best = self._ranked(meant, words, {id_: similarity[id_] for id_ in passages})
            except TimeoutError:
                measure, missing = "meaning", "out_of_time"
            except Unavailable:
                measure, missing = "meaning", "unavailable"
        return Ranking(self._hits(best[: question.top_k], passages, words.rarity, similarity), measure, missing)

    def _measure(self, asked: Embedding) -> Measure:
        if self._reranker:
            return "model"
        return "parts" if self._parts and asked.tokens else "meaning"

    def _spelled(self, text: str, words: _KeywordCandidates) -> str:
        """The question with its accents, without which no model understands it."""
        if words.coverage < _FAMILIAR or not lacks_diacritics(text):
            return text
        best = sorted(words.scores, key=words.scores.__getitem__, reverse=True)[:_SPELLING]
        return restore_diacritics(text, [passage.searchable for passage in self._passages(best).values()])

    def _by_meaning(self, asked: Embedding, document: str, scope: Scope, wanted: int) -> _SemanticCandidates:
        context = self._embedder.question(document) if document.strip() else None
        asks = [VectorQuery(asked.vector, scope, wanted)]
        asks += [VectorQuery(context.vector, scope, _NEARBY)] if context else []
        scores, *nearby = self._store.search(asks)
        return _SemanticCandidates(asked, context, scores, nearby[0] if nearby else {})

    def _by_words(self, terms: SparseTerms, scope: Scope, wanted: int) -> _KeywordCandidates:
        if not terms.numbers:
            return _KeywordCandidates(terms, {}, TermRarity({}), 0.0)
        among = _among(scope)
        asks = [VectorQuery(terms, scope, wanted, among)]
        asks += [VectorQuery(SparseTerms([number], [1.0]), among, 1, among) for number in terms.numbers]
        scores, *singly = self._store.search(asks)
        # How rare a word is, one passage that holds it tells.
        holders = {
            number: next(iter(found.items())) for number, found in zip(terms.numbers, singly, strict=True) if found
        }
        best = max(scores, key=scores.__getitem__, default=None)
        held = self._store.terms(list({*(id_ for id_, _ in holders.values()), *([best] if best else [])}))
        known = {
            number: (score, held[id_][number])
            for number, (id_, score) in holders.items()
            if number in held.get(id_, {})  # else deleted since
        }
        weights = rarity(terms, known, self._store.count(among) if len(known) < len(terms.numbers) else 0)
        return _KeywordCandidates(terms, scores, weights, weights.overlap(held.get(best, {})) if best else 0.0)

    def _complete(self, meant: _SemanticCandidates, words: _KeywordCandidates, scope: Scope) -> None:
        """Learn what each side knows of the candidates of the others."""
        ids = {**meant.scores, **meant.nearby, **words.scores}
        sides: list[tuple[dict[str, float], Vector | RemoteText | SparseTerms, Scope | None]] = [
            (meant.scores, meant.asked.vector, None)
        ]
        sides += [(meant.nearby, meant.context.vector, None)] if meant.context else []
        sides += [(words.scores, words.terms, _among(scope))] if words.terms.numbers else []
        asks, asking = [], []
        for scores, near, corpus in sides:
            unknown = tuple(id_ for id_ in ids if id_ not in scores)
            if unknown:
                asks.append(VectorQuery(near, replace(scope, ids=unknown), len(unknown), corpus))
                asking.append(scores)
        for scores, answer in zip(asking, self._store.search(asks) if asks else (), strict=True):
            scores.update(answer)

    def _ranked(
        self, meant: _SemanticCandidates, words: _KeywordCandidates, similarity: dict[str, float]
    ) -> list[tuple[str, float]]:
        scores = {
            id_: fused(
                alike,
                words.rarity.strength(words.scores.get(id_, 0.0)),
                words.coverage,
                likeness(meant.nearby[id_], self._embedder.space) if id_ in meant.nearby else None,
            )
            for id_, alike in similarity.items()
        }
        return sorted(scores.items(), key=lambda scored: (-scored[1], scored[0]))

    def _closer(
        self, asked: Embedding, question: SearchQuestion, passages: Mapping[str, Passage], scope: Scope
    ) -> dict[str, float]:
        """How alike those passages are to the question, read closely, or `Unavailable`."""
        if self._reranker:
            texts = {id_: passage.searchable for id_, passage in passages.items()}
            return dict(zip(texts, self._reranker.scores(question.text, list(texts.values())), strict=True))
        assert asked.tokens
        (sums,) = self._store.search([VectorQuery(asked.tokens, replace(scope, ids=tuple(passages)), len(passages))])
        return {id_: self._alike(total, asked.tokens) for id_, total in sums.items()}

    def _alike(self, total: float, parts: list[Vector]) -> float:
        return likeness_of_parts(total / len(parts), self._embedder.space)

    def _hits(
        self,
        best: list[tuple[str, float]],
        passages: Mapping[str, Passage],
        weights: TermRarity,
        similarity: dict[str, float],
    ) -> list[SearchHit]:
        terms = self._store.terms([id_ for id_, _ in best])
        return [
            SearchHit(passages[id_], score, similarity[id_], weights.overlap(terms.get(id_, {})))
            for id_, score in best
            if id_ in passages  # else deleted since
        ]

    def _passages(self, ids: Iterable[str]) -> dict[str, Passage]:
        wanted = list(ids)
        payloads = self._store.read(wanted)
        return {id_: Passage.from_record(payloads[id_]["passage"]) for id_ in wanted if id_ in payloads}


def _among(scope: Scope) -> Scope:
    """Where the rarity of words is reckoned: in the whole of the collections, not in what bears certain tags."""
    return replace(scope, tags=(), without=())


def _limited(terms: SparseTerms) -> SparseTerms:
    return SparseTerms(terms.numbers[:_WORDS], terms.weights[:_WORDS])
