"""Hybrid search: candidates by meaning and by keywords, one fused score, and late interaction for the best."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from shared.background import run_with_timeout, submit
from shared.knowledge.bm25 import SparseTerms, question_terms
from shared.knowledge.diacritics import lacks_diacritics, restore_diacritics
from shared.knowledge.fusion import TermRarity, fuse, rarity, similarity_of, similarity_of_tokens
from shared.knowledge.passages import Passage, SearchHit, SearchQuestion
from shared.knowledge.store import Scope, VectorQuery
from shared.knowledge.tokenizer import has_word
from shared.rpc.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from shared.knowledge.embedding import Embedder, Embedding, RemoteText, Vector
    from shared.knowledge.reranking import Reranker
    from shared.knowledge.store import VectorStore

_CANDIDATES: Final = 32
_CONTEXT_HITS: Final = 25
_RERANKED: Final = 20
_MAX_WORDS: Final = 256
_SAME_LANGUAGE: Final = 0.5
"""A question with at least this share of its words in one passage counts as being in that passage's language."""
_SPELLING_SOURCES: Final = 5


Measure = Literal["meaning", "parts", "model"]
"""The source of the hits' similarity: whole vectors, token vectors or a reranking model."""
MissingReranking = Literal["out_of_time", "unavailable"]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The hits of a search, and the reason if reranking was skipped."""

    hits: list[SearchHit]
    measure: Measure
    missing: MissingReranking | None = None


@dataclass(frozen=True, slots=True)
class _SemanticCandidates:
    """A question's embedding, and the passages with similar meaning: their cosines to it and to the context."""

    embedding: Embedding
    context: Embedding | None
    scores: dict[str, float]
    near_context: dict[str, float]


@dataclass(frozen=True, slots=True)
class _KeywordCandidates:
    """A question's words, and the BM25 scores of the passages that contain them."""

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
        deadline: float = math.inf,
        on_candidates: Callable[[Iterable[Passage]], None] = lambda _: None,
    ) -> Ranking:
        """Return the passages that answer `question`, best first. Skip reranking that is not done by `deadline`.

        `on_candidates` is called with all candidate passages before the reranking. A text without a word has none.
        """
        if not has_word(question.text):
            on_candidates(())
            return Ranking([], "meaning")
        scope = Scope(
            question.tenant_id,
            question.collections,
            kind="passage",
            tags=question.tags,
            excluded_documents=question.excluded_documents,
        )
        # The two sides are independent: keywords are looked up while the question is embedded.
        embed, limit = self._embedder.prepare_question(question.text), max(_CANDIDATES, question.top_k)
        meaning = submit(lambda: self._by_meaning(embed(), question.context, scope, limit))
        keywords = self._by_words(question_terms(question.text, _MAX_WORDS), scope, limit)
        corrected = self._with_diacritics(question.text, keywords)
        semantic = meaning.result()
        if corrected != question.text:
            semantic = self._by_meaning(self._embedder.question(corrected), question.context, scope, limit)
        self._fill_gaps(semantic, keywords, scope)
        similarity = {id_: similarity_of(cosine, self._embedder.space) for id_, cosine in semantic.scores.items()}
        best = self._ranked(semantic, keywords, similarity)[: max(_RERANKED, question.top_k)]
        passages = self._passages(id_ for id_, _ in best)
        on_candidates(passages.values())
        measure = self._measure(semantic.embedding) if question.rerank and passages else "meaning"
        missing: MissingReranking | None = None
        if measure != "meaning":
            try:
                reranked = run_with_timeout(
                    deadline - time.monotonic(), lambda: self._rerank(semantic.embedding, question, passages, scope)
                )
                similarity |= reranked
                best = self._ranked(semantic, keywords, {id_: similarity[id_] for id_ in passages})
            except TimeoutError:
                measure, missing = "meaning", "out_of_time"
            except Unavailable:
                measure, missing = "meaning", "unavailable"
        return Ranking(self._hits(best[: question.top_k], passages, keywords.rarity, similarity), measure, missing)

    def _measure(self, embedding: Embedding) -> Measure:
        if self._reranker:
            return "model"
        return "parts" if self._parts and embedding.tokens else "meaning"

    def _with_diacritics(self, text: str, keywords: _KeywordCandidates) -> str:
        """Return the question with its diacritics, which embedding models need."""
        if keywords.coverage < _SAME_LANGUAGE or not lacks_diacritics(text):
            return text
        best = sorted(keywords.scores, key=keywords.scores.__getitem__, reverse=True)[:_SPELLING_SOURCES]
        return restore_diacritics(text, [passage.searchable_text for passage in self._passages(best).values()])

    def _by_meaning(self, embedding: Embedding, document: str, scope: Scope, limit: int) -> _SemanticCandidates:
        context = self._embedder.question(document) if document.strip() else None
        queries = [VectorQuery(embedding.vector, scope, limit)]
        queries += [VectorQuery(context.vector, scope, _CONTEXT_HITS)] if context else []
        scores, *near_context = self._store.search(queries)
        return _SemanticCandidates(embedding, context, scores, near_context[0] if near_context else {})

    def _by_words(self, terms: SparseTerms, scope: Scope, limit: int) -> _KeywordCandidates:
        if not terms.numbers:
            return _KeywordCandidates(terms, {}, TermRarity({}), 0.0)
        corpus = _corpus(scope)
        queries = [VectorQuery(terms, scope, limit, corpus)]
        queries += [VectorQuery(SparseTerms([number], [1.0]), corpus, 1, corpus) for number in terms.numbers]
        scores, *singly = self._store.search(queries)
        # One passage that contains a word is enough to derive the word's rarity.
        holders = {number: next(iter(hits.items())) for number, hits in zip(terms.numbers, singly, strict=True) if hits}
        best = max(scores, key=scores.__getitem__, default=None)
        stored_terms = self._store.terms(list({*(id_ for id_, _ in holders.values()), *([best] if best else [])}))
        singles = {
            number: (score, stored_terms[id_][number])
            for number, (id_, score) in holders.items()
            if number in stored_terms.get(id_, {})  # else deleted in the meantime
        }
        rarities = rarity(terms, singles, self._store.count(corpus) if len(singles) < len(terms.numbers) else 0)
        return _KeywordCandidates(
            terms, scores, rarities, rarities.overlap(stored_terms.get(best, {})) if best else 0.0
        )

    def _fill_gaps(self, semantic: _SemanticCandidates, keywords: _KeywordCandidates, scope: Scope) -> None:
        """Score the candidates of each side by the other criteria."""
        ids = {**semantic.scores, **semantic.near_context, **keywords.scores}
        sides: list[tuple[dict[str, float], Vector | RemoteText | SparseTerms, Scope | None]] = [
            (semantic.scores, semantic.embedding.vector, None)
        ]
        sides += [(semantic.near_context, semantic.context.vector, None)] if semantic.context else []
        sides += [(keywords.scores, keywords.terms, _corpus(scope))] if keywords.terms.numbers else []
        queries, sides_queried = [], []
        for scores, near, corpus in sides:
            unknown = tuple(id_ for id_ in ids if id_ not in scores)
            if unknown:
                queries.append(VectorQuery(near, replace(scope, ids=unknown), len(unknown), corpus))
                sides_queried.append(scores)
        for scores, result in zip(sides_queried, self._store.search(queries) if queries else (), strict=True):
            scores.update(result)

    def _ranked(
        self, semantic: _SemanticCandidates, keywords: _KeywordCandidates, similarity: dict[str, float]
    ) -> list[tuple[str, float]]:
        scores = {
            id_: fuse(
                value,
                keywords.rarity.strength(keywords.scores.get(id_, 0.0)),
                keywords.coverage,
                similarity_of(semantic.near_context[id_], self._embedder.space)
                if id_ in semantic.near_context
                else None,
            )
            for id_, value in similarity.items()
        }
        return sorted(scores.items(), key=lambda scored: (-scored[1], scored[0]))

    def _rerank(
        self, embedding: Embedding, question: SearchQuestion, passages: Mapping[str, Passage], scope: Scope
    ) -> dict[str, float]:
        """Return the reranked similarity of each passage, or raise `Unavailable`."""
        if self._reranker:
            texts = {id_: passage.searchable_text for id_, passage in passages.items()}
            return dict(zip(texts, self._reranker.scores(question.text, list(texts.values())), strict=True))
        assert embedding.tokens
        (sums,) = self._store.search(
            [VectorQuery(embedding.tokens, replace(scope, ids=tuple(passages)), len(passages))]
        )
        count, space = len(embedding.tokens), self._embedder.space
        return {id_: similarity_of_tokens(total / count, space) for id_, total in sums.items()}

    def _hits(
        self,
        best: list[tuple[str, float]],
        passages: Mapping[str, Passage],
        rarities: TermRarity,
        similarity: dict[str, float],
    ) -> list[SearchHit]:
        terms = self._store.terms([id_ for id_, _ in best])
        return [
            SearchHit(passages[id_], score, similarity[id_], rarities.overlap(terms.get(id_, {})))
            for id_, score in best
            if id_ in passages  # else deleted in the meantime
        ]

    def _passages(self, ids: Iterable[str]) -> dict[str, Passage]:
        ids = list(ids)
        payloads = self._store.read(ids)
        return {id_: Passage.from_record(payloads[id_]["passage"]) for id_ in ids if id_ in payloads}


def _corpus(scope: Scope) -> Scope:
    """Return the scope in which rarity is counted: the whole collections, regardless of tags."""
    return replace(scope, tags=(), excluded_documents=())
