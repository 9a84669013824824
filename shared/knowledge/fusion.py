"""Score fusion of semantic similarity and keyword match.

Each side has its own absolute scale, independent of the other hits: the position of a cosine between unrelated and
identical texts, and the passage's share of the highest BM25 score possible for the question. So a side without
information adds almost nothing to any passage: keywords if the question is in another language, meaning if the
question has lost its diacritics. Reciprocal rank fusion (RRF), which compares ranks, ranks worse (docs/decisions.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from shared.knowledge.bm25 import SATURATION, SparseTerms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.knowledge.embedding.models import Space

CONTEXT: Final = 0.5
"""Weight of the similarity to the caller's own document, relative to the question's."""
_TOKENS_LOWER: Final = 0.1
"""Token vectors are less similar than whole texts: their cosines are lower by this much."""


@dataclass(frozen=True)
class TermRarity:
    """The rarity of each word of a question among the searched passages."""

    weights: Mapping[int, float]

    @cached_property
    def total(self) -> float:
        """The sum over all words."""
        return sum(self.weights.values())

    def overlap(self, terms: Mapping[int, float]) -> float:
        """Return the share of the total in 0-1 that a passage with `terms` contains."""
        contained = sum(weight for number, weight in self.weights.items() if number in terms)
        return contained / self.total if self.total else 0.0

    def strength(self, bm25: float) -> float:
        """Return a BM25 score as a share in 0-1 of the highest possible score."""
        return bm25 / (self.total * (SATURATION + 1)) if self.total else 0.0


def rarity(question: SparseTerms, singles: Mapping[int, tuple[float, float]], passages: int) -> TermRarity:
    """Return the rarity of each word of `question`, derived from its score and weight in one passage containing it."""
    unknown = math.log(1 + (passages + 0.5) / 0.5)
    weights = {}
    for number, weight in zip(question.numbers, question.weights, strict=True):
        score, contained = singles.get(number, (unknown, 1.0))
        weights[number] = weight * score / contained
    return TermRarity(weights)


def similarity_of(cosine: float, space: Space) -> float:
    """Map the cosine of two texts to 0-1, from unrelated to identical."""
    return _clipped((cosine - space.floor) / space.reach)


def similarity_of_tokens(cosine: float, space: Space) -> float:
    """Map the mean of each question token's best cosine in a passage to 0-1."""
    return _clipped((cosine - space.floor + _TOKENS_LOWER) / space.reach)


def fuse(similarity: float, strength: float, coverage: float, context: float | None) -> float:
    """Return one score in 0-1. `coverage` is the best keyword hit's overlap, the same for all hits of a question.

    As `coverage` grows, the weight of meaning falls from all to half. So a passage in another language can reach full
    relevance.
    """
    nearness = 0.0 if context is None else CONTEXT * context
    return _clipped((similarity + strength + nearness) / (1 + coverage + (0.0 if context is None else CONTEXT)))


def _clipped(value: float) -> float:
    return min(1.0, max(0.0, value))
