"""Hybrid search: candidates by meaning and by keywords, one fused score, and late interaction for the best."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from shared.platform.background import run_with_timeout, submit
from shared.rpc.errors import Unavailable
from shared.search.bm25 import question_terms
from shared.search.candidates import (
    CANDIDATES,
    MAX_WORDS,
    RERANKED,
    SAME_LANGUAGE,
    CandidateSearch,
    KeywordCandidates,
    SemanticCandidates,
)
from shared.search.diacritics import lacks_diacritics, restore_diacritics
from shared.search.document_words import match_documents, numbers_to_read, of_words, words_id
from shared.search.fusion import PassageMatch, WordWeights, similarity_of, similarity_of_tokens
from shared.search.passages import Passage, SearchHit, SearchQuestion
from shared.search.store import Scope, VectorQuery
from shared.search.tokenizer import has_content_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from concurrent.futures import Future

    from shared.search.document_words import DocumentMatch
    from shared.search.embedding import Embedder, Embedding, Vector
    from shared.search.reranking import Reranker
    from shared.search.store import VectorStore

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
class Candidates:
    """The passages that may answer a question, with their scores before the close comparison."""

    question: SearchQuestion
    scope: Scope
    semantic: SemanticCandidates = field(default_factory=SemanticCandidates)
    keywords: KeywordCandidates = field(default_factory=KeywordCandidates)
    matches: dict[str, PassageMatch] = field(default_factory=dict)
    passages: dict[str, Passage] = field(default_factory=dict)
    overlaps: dict[str, float] = field(default_factory=dict)
    """The share of the question's words, by rarity, that each passage contains."""
    words: WordWeights = field(default_factory=WordWeights)


class HybridSearch:
    """Searches one store with one embedder."""

    def __init__(
        self, embedder: Embedder, store: VectorStore, *, parts: bool | None = None, reranker: Reranker | None = None
    ) -> None:
        self._embedder = embedder
        self._store = store
        self._parts = embedder.space.tokens if parts is None else parts
        self._reranker = reranker
        self._calibration = embedder.space.calibration
        self._candidates = CandidateSearch(store, "passage")

    def embed(self, text: str) -> Future[Embedding]:
        """Begin to embed a question in the background."""
        return submit(self._embedder.prepare_question(text))

    def candidates(self, question: SearchQuestion, embedding: Future[Embedding] | None = None) -> Candidates:
        """Return the passages that may answer `question`, by meaning and by words. A text without a word has none.

        `embedding` is the question's, if the caller has begun it.
        """
        # Only passages have vectors. A condition on the kind would be checked for each, and no query needs it.
        scope = Scope(
            question.tenant_id,
            question.collections,
            tags=question.tags,
            metadata=question.metadata,
            excluded_documents=question.excluded_documents,
        )
        if not has_content_word(question.text):
            return Candidates(question, scope)
        # The two sides are independent: keywords are looked up while the question is embedded.
        embedding, limit = embedding or self.embed(question.text), max(CANDIDATES, question.top_k)
        context = self.embed(question.context) if question.context.strip() else None
        corpus = _corpus(scope)
        keywords = self._candidates.by_words(
            question_terms(question.text, MAX_WORDS), scope, corpus, limit, of_words(corpus)
        )
        corrected = self._with_diacritics(question.text, keywords)
        is_restored = corrected != question.text
        semantic = self._candidates.by_meaning(
            self._embedder.question(corrected) if is_restored else embedding.result(),
            context.result() if context else None,
            scope,
            limit,
            tuple(keywords.scores),
        )
        self._candidates.fill_gaps(semantic, keywords, scope)
        scale, coverage = self._calibration, keywords.coverage
        passage_words = scale.restored_words if is_restored else scale.words * coverage
        words = WordWeights.of(passage_words, scale.document_words, coverage, coverage)
        candidates = Candidates(question, scope, semantic, keywords, self._matches(semantic, keywords), words=words)
        best = _best_first(self._scores(candidates, candidates.matches))[: max(RERANKED, question.top_k)]
        stored = self._store.read_with_terms(best, keywords.terms.numbers)
        kept = [id_ for id_ in best if id_ in stored]  # others were deleted in the meantime
        return replace(
            candidates,
            matches={id_: candidates.matches[id_] for id_ in kept},
            passages={id_: Passage.from_record(stored[id_][0]["passage"]) for id_ in kept},
            overlaps={id_: keywords.rarity.overlap(stored[id_][1]) for id_ in kept},
        )

    def rank(self, candidates: Candidates, deadline: float = math.inf) -> Ranking:
        """Return the best candidates, compared closely. Skip the part of it that is not done by `deadline`."""
        if not candidates.passages:
            return Ranking([], "meaning")
        documents = submit(partial(self._match_documents, candidates))
        measure: Measure = self._measure(candidates)
        missing: MissingReranking | None = None
        try:
            if measure == "meaning":
                matches = self._compare(candidates)
            else:
                closely = self._read_closely if measure == "model" else self._compare_tokens
                matches = run_with_timeout(deadline - time.monotonic(), partial(closely, candidates))
        except TimeoutError:
            measure, missing, matches = "meaning", "out_of_time", candidates.matches
        except Unavailable:
            if measure == "meaning":
                raise
            measure, missing, matches = "meaning", "unavailable", candidates.matches
        candidates, matches = _with_documents(candidates, matches, documents.result())
        scores = self._scores(candidates, matches)
        hits = [
            SearchHit(
                candidates.passages[id_],
                scores[id_],
                matches[id_].similarity,
                candidates.overlaps[id_],
                tuple(matches[id_].parts(self._calibration, candidates.words)),
            )
            for id_ in _best_first(scores)[: candidates.question.top_k]
        ]
        return Ranking(hits, measure, missing)

    def _scores(self, candidates: Candidates, matches: Mapping[str, PassageMatch]) -> dict[str, float]:
        return {id_: match.score(self._calibration, candidates.words) for id_, match in matches.items()}

    def _match_documents(self, candidates: Candidates) -> dict[str, DocumentMatch]:
        """Return the keyword matches of the passages' documents. One that an earlier splitter has made has none."""
        terms = candidates.keywords.terms
        if not terms.numbers:
            return {}
        ids = {words_id(document) for document in {passage.document for passage in candidates.passages.values()}}
        counts = self._store.terms(list(ids), numbers_to_read(terms))
        return match_documents(counts, candidates.keywords.document_rarity)

    def _measure(self, candidates: Candidates) -> Measure:
        if not candidates.question.rerank:
            return "meaning"
        if self._reranker:
            return "model"
        return "parts" if self._parts and candidates.semantic.embedding.tokens else "meaning"

    def _with_diacritics(self, text: str, keywords: KeywordCandidates) -> str:
        """Return the question with its diacritics, which embedding models need."""
        if keywords.coverage < SAME_LANGUAGE or not lacks_diacritics(text):
            return text
        best = keywords.best(_SPELLING_SOURCES)
        return restore_diacritics(text, [passage.searchable_text for passage in self._passages(best).values()])

    def _matches(self, semantic: SemanticCandidates, keywords: KeywordCandidates) -> dict[str, PassageMatch]:
        return {
            id_: PassageMatch(
                whole=similarity_of(cosine, self._calibration),
                strength=keywords.rarity.strength(keywords.scores.get(id_, 0.0)),
                context=similarity_of(semantic.near_context[id_], self._calibration)
                if id_ in semantic.near_context
                else None,
            )
            for id_, cosine in semantic.scores.items()
        }

    def _compare(self, candidates: Candidates, tokens: list[Vector] | None = None) -> dict[str, PassageMatch]:
        """Return the matches with the beginnings of the passages' documents, and by late interaction of `tokens`."""
        semantic, passages, scope = candidates.semantic, candidates.passages, candidates.scope
        firsts = {id_: passage.document.first_passage_id for id_, passage in passages.items() if passage.ordinal}
        unknown = tuple({first for first in firsts.values() if first not in semantic.scores})
        queries = [VectorQuery(semantic.embedding.vector, replace(scope, ids=unknown), len(unknown))] if unknown else []
        queries += [VectorQuery(tokens, replace(scope, ids=tuple(passages)), len(passages))] if tokens else []
        results = self._store.search(queries) if queries else []
        cosines = semantic.scores | (results[0] if unknown else {})
        sums = results[-1] if tokens else {}
        compared = {}
        for id_, match in candidates.matches.items():
            in_tokens = (
                similarity_of_tokens(sums[id_] / len(tokens), self._calibration) if id_ in sums and tokens else None
            )
            first = cosines.get(firsts.get(id_, ""))
            beginning = None if first is None else similarity_of(first, self._calibration)
            compared[id_] = replace(match, tokens=in_tokens, beginning=beginning)
        return compared

    def _compare_tokens(self, candidates: Candidates) -> dict[str, PassageMatch]:
        return self._compare(candidates, candidates.semantic.embedding.tokens)

    def _read_closely(self, candidates: Candidates) -> dict[str, PassageMatch]:
        """Return the matches with each passage's relevance by the reranking model, or raise `Unavailable`."""
        assert self._reranker
        texts = [candidates.passages[id_].searchable_text for id_ in candidates.matches]
        relevance = self._reranker.scores(candidates.question.text, texts)
        rated = zip(candidates.matches.items(), relevance, strict=True)
        return {id_: replace(match, relevance=each) for (id_, match), each in rated}

    def _passages(self, ids: Iterable[str]) -> dict[str, Passage]:
        ids = list(ids)
        payloads = self._store.read(ids)
        return {id_: Passage.from_record(payloads[id_]["passage"]) for id_ in ids if id_ in payloads}


def _with_documents(
    candidates: Candidates, matches: Mapping[str, PassageMatch], documents: Mapping[str, DocumentMatch]
) -> tuple[Candidates, dict[str, PassageMatch]]:
    """Return the candidates and their matches with those of their documents."""
    coverage = max((each.overlap for each in documents.values()), default=candidates.keywords.coverage)
    words = WordWeights.of(candidates.words.passage, candidates.words.document, candidates.keywords.coverage, coverage)
    matched = {
        id_: replace(match, document=document.strength)
        if (document := documents.get(words_id(candidates.passages[id_].document)))
        else match
        for id_, match in matches.items()
    }
    return replace(candidates, words=words), matched


def _best_first(scores: Mapping[str, float]) -> list[str]:
    return sorted(scores, key=lambda id_: (-scores[id_], id_))


def _corpus(scope: Scope) -> Scope:
    """Return the scope in which rarity is counted: the whole collections, regardless of tags and metadata."""
    return replace(scope, tags=(), metadata=(), excluded_documents=())
