"""The points that may answer a question, by meaning and by words, each with both scores."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from shared.platform.ttl_cache import TtlCache
from shared.search.bm25 import SparseTerms
from shared.search.embedding import Embedding
from shared.search.fusion import TermRarity, rarity
from shared.search.store import VectorQuery

if TYPE_CHECKING:
    from shared.search.embedding import RemoteText, Vector
    from shared.search.store import Kind, Scope, VectorStore

CANDIDATES: Final = 32
"""The points of each side."""
RERANKED: Final = 20
"""The best of both sides, which are compared by token vectors."""
MAX_WORDS: Final = 256
SAME_LANGUAGE: Final = 0.4
"""A question with at least this share of its words in one point counts as being in that point's language."""
_CONTEXT_HITS: Final = 25
_COUNT_SECONDS: Final = 10.0
_MANY_POINTS: Final = 1_000
"""From this number on, the count is kept for a while: only its logarithm matters, and counting takes milliseconds."""


@dataclass(frozen=True, slots=True)
class SemanticCandidates:
    """A question's embedding, and the points with similar meaning: their cosines to it and to the context."""

    embedding: Embedding = field(default_factory=lambda: Embedding([]))
    context: Embedding | None = None
    scores: dict[str, float] = field(default_factory=dict)
    near_context: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeywordCandidates:
    """A question's words, and the BM25 scores of the points that contain them."""

    terms: SparseTerms = field(default_factory=lambda: SparseTerms([], []))
    scores: dict[str, float] = field(default_factory=dict)
    rarity: TermRarity = field(default_factory=lambda: TermRarity({}))
    document_rarity: TermRarity = field(default_factory=lambda: TermRarity({}))
    """The rarity of each word among whole documents."""
    coverage: float = 0.0

    def best(self, count: int) -> list[str]:
        """Return the best points by words."""
        return sorted(self.scores, key=self.scores.__getitem__, reverse=True)[:count]


class CandidateSearch:
    """Searches one store for points of one kind."""

    def __init__(self, store: VectorStore, kind: Kind) -> None:
        self._store = store
        self._kind = kind
        self._counts: TtlCache[Scope, int] = TtlCache(_COUNT_SECONDS)

    def by_meaning(
        self, embedding: Embedding, context: Embedding | None, scope: Scope, limit: int, known: tuple[str, ...]
    ) -> SemanticCandidates:
        """Search for points with similar meaning. The cosines of the `known` candidates come in the same response."""
        nearest = [VectorQuery(embedding.vector, scope, limit)]
        nearest += [VectorQuery(context.vector, scope, _CONTEXT_HITS)] if context else []
        among_known = replace(scope, ids=known)
        compared = [replace(each, scope=among_known, limit=len(known)) for each in nearest] if known else []
        results = self._store.search([*nearest, *compared])
        ranked = results[: len(nearest)]
        for scores, others in zip(ranked, results[len(nearest) :], strict=False):
            scores.update(others)
        return SemanticCandidates(embedding, context, ranked[0], ranked[1] if context else {})

    def by_words(
        self, terms: SparseTerms, scope: Scope, corpus: Scope, limit: int, documents: Scope | None = None
    ) -> KeywordCandidates:
        """Search for points with words of a question.

        The words' rarity is counted in `corpus`, and for whole documents in `documents`.
        """
        if not terms.numbers:
            return KeywordCandidates()
        corpora = [corpus, documents] if documents else [corpus]
        queries = [VectorQuery(terms, scope, limit, corpus)]
        queries += [
            VectorQuery(SparseTerms([number], [1.0]), each, 1, each) for each in corpora for number in terms.numbers
        ]
        scores, *singly = self._store.search(queries)
        best = max(scores, key=scores.__getitem__, default=None)
        # One point that contains a word is enough to derive the word's rarity.
        read = {*([best] if best else []), *(id_ for hits in singly for id_ in hits)}
        stored_terms = self._store.terms(list(read), terms.numbers)
        rarities = []
        for each, kind in zip(corpora, (self._kind, "words"), strict=False):
            hits, singly = singly[: len(terms.numbers)], singly[len(terms.numbers) :]
            singles = {
                number: (score, stored_terms[id_][number])
                for number, holder in zip(terms.numbers, hits, strict=True)
                for id_, score in holder.items()
                if number in stored_terms.get(id_, {})  # else deleted in the meantime
            }
            rarities.append(rarity(terms, singles, self._count(each, kind) if len(singles) < len(terms.numbers) else 0))
        coverage = rarities[0].overlap(stored_terms.get(best, {})) if best else 0.0
        return KeywordCandidates(terms, scores, rarities[0], rarities[-1], coverage)

    def fill_gaps(self, semantic: SemanticCandidates, keywords: KeywordCandidates, scope: Scope) -> None:
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

    def _count(self, corpus: Scope, kind: Kind) -> int:
        # Version records are no passages. A condition on the kind would be checked for each point of a query.
        counted = replace(corpus, kind=kind)
        count = self._counts.get(counted) or self._store.count(counted)
        return self._counts.put(counted, count) if count >= _MANY_POINTS else count
