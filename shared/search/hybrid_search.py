"""Hybrid search: candidates by meaning and by keywords, one fused score, and late interaction for the best."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from shared.platform.background import run_with_timeout, submit
from shared.platform.ttl_cache import TtlCache
from shared.rpc.errors import Unavailable
from shared.search.bm25 import SparseTerms, question_terms
from shared.search.diacritics import lacks_diacritics, restore_diacritics
from shared.search.fusion import PassageMatch, TermRarity, rarity, similarity_of, similarity_of_tokens
from shared.search.passages import Passage, SearchHit, SearchQuestion
from shared.search.store import Scope, VectorQuery
from shared.search.tokenizer import has_word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from concurrent.futures import Future

    from shared.search.embedding import Embedder, Embedding, RemoteText, Vector
    from shared.search.reranking import Reranker
    from shared.search.store import VectorStore

_CANDIDATES: Final = 32
_CONTEXT_HITS: Final = 25
_RERANKED: Final = 20
_MAX_WORDS: Final = 256
_SAME_LANGUAGE: Final = 0.4
"""A question with at least this share of its words in one passage counts as being in that passage's language."""
_SPELLING_SOURCES: Final = 5
_COUNT_SECONDS: Final = 10.0
_MANY_PASSAGES: Final = 1_000
"""From this number on, the count is kept for a while: only its logarithm matters, and counting takes milliseconds."""


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
        self._calibration = embedder.space.calibration
        self._counts: TtlCache[Scope, int] = TtlCache(_COUNT_SECONDS)

    def embed(self, text: str) -> Future[Embedding]:
        """Begin to embed a question in the background."""
        return submit(self._embedder.prepare_question(text))

    def rank(
        self,
        question: SearchQuestion,
        deadline: float = math.inf,
        on_candidates: Callable[[Iterable[Passage]], None] = lambda _: None,
        embedding: Future[Embedding] | None = None,
    ) -> Ranking:
        """Return the passages that answer `question`, best first. Skip reranking that is not done by `deadline`.

        `on_candidates` is called with all candidate passages before the reranking. A text without a word has none.
        `embedding` is the question's, if the caller has begun it.
        """
        if not has_word(question.text):
            on_candidates(())
            return Ranking([], "meaning")
        # Only passages have vectors. A condition on the kind would be checked for each, and no query needs it.
        scope = Scope(
            question.tenant_id,
            question.collections,
            tags=question.tags,
            excluded_documents=question.excluded_documents,
        )
        # The two sides are independent: keywords are looked up while the question is embedded.
        embedding, limit = embedding or self.embed(question.text), max(_CANDIDATES, question.top_k)
        context = self.embed(question.context) if question.context.strip() else None
        keywords = self._by_words(question_terms(question.text, _MAX_WORDS), scope, limit)
        corrected = self._with_diacritics(question.text, keywords)
        is_restored = corrected != question.text
        semantic = self._by_meaning(
            self._embedder.question(corrected) if is_restored else embedding.result(),
            context.result() if context else None,
            scope,
            limit,
            tuple(keywords.scores),
        )
        self._fill_gaps(semantic, keywords, scope)
        matches = self._matches(semantic, keywords)
        calibration, coverage = self._calibration, keywords.coverage
        words = calibration.restored_words if is_restored else calibration.words * coverage

        def score_all() -> dict[str, float]:
            return {id_: match.score(calibration, words, coverage) for id_, match in matches.items()}

        best = _best_first(score_all())[: max(_RERANKED, question.top_k)]
        stored = self._store.read_with_terms(best, keywords.terms.numbers)
        passages = {id_: Passage.from_record(stored[id_][0]["passage"]) for id_ in best if id_ in stored}
        on_candidates(passages.values())
        matches = {id_: matches[id_] for id_ in passages}  # others were deleted in the meantime
        measure = self._measure(semantic.embedding) if question.rerank and passages else "meaning"
        missing: MissingReranking | None = None
        compare = partial(self._compare, semantic, matches, passages, scope, with_tokens=measure == "parts")
        rerank = partial(self._read_closely, question, matches, passages) if measure == "model" else compare
        if measure == "meaning":
            matches = rerank()
        else:
            try:
                matches = run_with_timeout(deadline - time.monotonic(), rerank)
            except TimeoutError:
                measure, missing = "meaning", "out_of_time"
            except Unavailable:
                measure, missing = "meaning", "unavailable"
        scores = score_all()
        hits = [
            SearchHit(
                passages[id_],
                scores[id_],
                matches[id_].similarity,
                keywords.rarity.overlap(stored[id_][1]),
                tuple(matches[id_].parts(calibration, words, coverage)),
            )
            for id_ in _best_first(scores)[: question.top_k]
        ]
        return Ranking(hits, measure, missing)

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

    def _by_meaning(
        self, embedding: Embedding, context: Embedding | None, scope: Scope, limit: int, known: tuple[str, ...]
    ) -> _SemanticCandidates:
        """Search for passages with similar meaning. The cosines of the `known` candidates come in the same response."""
        nearest = [VectorQuery(embedding.vector, scope, limit)]
        nearest += [VectorQuery(context.vector, scope, _CONTEXT_HITS)] if context else []
        among_known = replace(scope, ids=known)
        compared = [replace(each, scope=among_known, limit=len(known)) for each in nearest] if known else []
        results = self._store.search([*nearest, *compared])
        found = results[: len(nearest)]
        for scores, others in zip(found, results[len(nearest) :], strict=False):
            scores.update(others)
        return _SemanticCandidates(embedding, context, found[0], found[1] if context else {})

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
        read = {*(id_ for id_, _ in holders.values()), *([best] if best else [])}
        stored_terms = self._store.terms(list(read), terms.numbers)
        singles = {
            number: (score, stored_terms[id_][number])
            for number, (id_, score) in holders.items()
            if number in stored_terms.get(id_, {})  # else deleted in the meantime
        }
        rarities = rarity(terms, singles, self._count(corpus) if len(singles) < len(terms.numbers) else 0)
        return _KeywordCandidates(
            terms, scores, rarities, rarities.overlap(stored_terms.get(best, {})) if best else 0.0
        )

    def _count(self, corpus: Scope) -> int:
        count = self._counts.get(corpus) or self._store.count(replace(corpus, kind="passage"))
        return self._counts.put(corpus, count) if count >= _MANY_PASSAGES else count

    def _fill_gaps(self, semantic: _SemanticCandidates, keywords: _KeywordCandidates, scope: Scope) -> None:
        """Score the candidates of each side by the other criteria."""
        ids = {**semantic.scores, **semantic.near_context, **keywords.scores}
        if keywords.terms.numbers:
            # The rarity of each word is known by now. A query would count it again.
            unknown = [id_ for id_ in ids if id_ not in keywords.scores]
            terms = self._store.terms(unknown, keywords.terms.numbers) if unknown else {}
            keywords.scores.update({id_: keywords.rarity.bm25(each) for id_, each in terms.items()})
        sides: list[tuple[dict[str, float], Vector | RemoteText]] = [(semantic.scores, semantic.embedding.vector)]
        sides += [(semantic.near_context, semantic.context.vector)] if semantic.context else []
        queries, sides_queried = [], []
        for scores, near in sides:
            unknown = [id_ for id_ in ids if id_ not in scores]
            if unknown:
                queries.append(VectorQuery(near, replace(scope, ids=tuple(unknown)), len(unknown)))
                sides_queried.append(scores)
        for scores, result in zip(sides_queried, self._store.search(queries) if queries else (), strict=True):
            scores.update(result)

    def _matches(self, semantic: _SemanticCandidates, keywords: _KeywordCandidates) -> dict[str, PassageMatch]:
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

    def _compare(
        self,
        semantic: _SemanticCandidates,
        matches: Mapping[str, PassageMatch],
        passages: Mapping[str, Passage],
        scope: Scope,
        *,
        with_tokens: bool,
    ) -> dict[str, PassageMatch]:
        """Return the matches with the beginnings of the passages' documents, and by late interaction if wanted."""
        vector, tokens = semantic.embedding.vector, semantic.embedding.tokens if with_tokens else None
        firsts = {id_: passage.document.first_passage_id for id_, passage in passages.items() if passage.ordinal}
        unknown = tuple({first for first in firsts.values() if first not in semantic.scores})
        queries = [VectorQuery(vector, replace(scope, ids=unknown), len(unknown))] if unknown else []
        queries += [VectorQuery(tokens, replace(scope, ids=tuple(passages)), len(passages))] if tokens else []
        results = self._store.search(queries) if queries else []
        cosines = semantic.scores | (results[0] if unknown else {})
        sums = results[-1] if tokens else {}
        compared = {}
        for id_, match in matches.items():
            in_tokens = (
                similarity_of_tokens(sums[id_] / len(tokens), self._calibration) if id_ in sums and tokens else None
            )
            first = cosines.get(firsts.get(id_, ""))
            beginning = None if first is None else similarity_of(first, self._calibration)
            compared[id_] = replace(match, tokens=in_tokens, beginning=beginning)
        return compared

    def _read_closely(
        self, question: SearchQuestion, matches: Mapping[str, PassageMatch], passages: Mapping[str, Passage]
    ) -> dict[str, PassageMatch]:
        """Return the matches with each passage's relevance by the reranking model, or raise `Unavailable`."""
        assert self._reranker
        texts = [passages[id_].searchable_text for id_ in matches]
        relevance = self._reranker.scores(question.text, texts)
        return {
            id_: replace(match, relevance=each) for (id_, match), each in zip(matches.items(), relevance, strict=True)
        }

    def _passages(self, ids: Iterable[str]) -> dict[str, Passage]:
        ids = list(ids)
        payloads = self._store.read(ids)
        return {id_: Passage.from_record(payloads[id_]["passage"]) for id_ in ids if id_ in payloads}


def _best_first(scores: Mapping[str, float]) -> list[str]:
    return sorted(scores, key=lambda id_: (-scores[id_], id_))


def _corpus(scope: Scope) -> Scope:
    """Return the scope in which rarity is counted: the whole collections, regardless of tags."""
    return replace(scope, tags=(), excluded_documents=())
