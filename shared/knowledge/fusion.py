"""How what a passage means and which words it holds become one score.

Both sides are measured on scales of their own that do not depend on what else was found: how far a cosine lies
between unrelated and identical, and how much of the most that BM25 could give the question's words the passage has
got. So the side that has nothing to say adds next to nothing to anyone: words, where the question is in another
language; meaning, where it has lost its accents.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from shared.knowledge.bm25 import SATURATION, SparseTerms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.knowledge.embedding.spaces import Space

CONTEXT: Final = 0.5
"""What nearness to the asker's own document counts beside nearness to the question."""
_PARTS_LOWER: Final = 0.1
"""Parts of texts are less alike than wholes: their cosines lie this much lower."""


@dataclass(frozen=True)
class TermRarity:
    """How rare the words of a question are among the passages that are searched."""

    weights: Mapping[int, float]

    @cached_property
    def total(self) -> float:
        """That of all words together."""
        return sum(self.weights.values())

    def overlap(self, terms: Mapping[int, float]) -> float:
        """The share of it that a passage with `terms` holds, in 0-1."""
        held = sum(weight for number, weight in self.weights.items() if number in terms)
        return held / self.total if self.total else 0.0

    def strength(self, bm25: float) -> float:
        """A BM25 score as a share of the most that there can be, in 0-1."""
        return bm25 / (self.total * (SATURATION + 1)) if self.total else 0.0


def rarity(question: SparseTerms, found: Mapping[int, tuple[float, float]], passages: int) -> TermRarity:
    """The rarity of each word of `question`, from the score and weight it has in one passage that it was `found` in."""
    unknown = math.log(1 + (passages + 0.5) / 0.5)
    weights = {}
    for number, weight in zip(question.numbers, question.weights, strict=True):
        score, held = found.get(number, (unknown, 1.0))
        weights[number] = weight * score / held
    return TermRarity(weights)


def likeness(cosine: float, space: Space) -> float:
    """A cosine of two texts between unrelated and identical, in 0-1."""
    return _clipped((cosine - space.floor) / space.reach)


def likeness_of_parts(cosine: float, space: Space) -> float:
    """A mean cosine of each part of a question with its nearest in a passage, in 0-1."""
    return _clipped((cosine - space.floor + _PARTS_LOWER) / space.reach)


def fused(similarity: float, strength: float, coverage: float, context: float | None) -> float:
    """One score in 0-1; `coverage` is the overlap of the best passage by words, the same for all of a question.

    The weight of the meaning falls from all to half as `coverage` grows: a passage in another language can be as
    relevant as can be.
    """
    nearby = 0.0 if context is None else CONTEXT * context
    return _clipped((similarity + strength + nearby) / (1 + coverage + (0.0 if context is None else CONTEXT)))


def _clipped(value: float) -> float:
    return min(1.0, max(0.0, value))
