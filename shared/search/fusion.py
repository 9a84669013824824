"""Score fusion of semantic similarity and keyword match.

Each part has its own absolute scale, independent of the other hits: the position of a cosine between unrelated and
identical texts, and the passage's share of the highest BM25 score possible for the question. So scores of different
questions are comparable, and keywords add nothing to a question in another language. Fusion that compares the hits with
each other ranks worse (docs/decisions.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

from shared.search.bm25 import SATURATION, SparseTerms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.search.calibration import Calibration

CONTEXT: Final = 1 / 3
"""Weight of the similarity to the caller's own document, relative to the question's."""


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

    def bm25(self, terms: Mapping[int, float]) -> float:
        """Return the BM25 score of a passage with `terms`."""
        return sum(weight * terms.get(number, 0.0) for number, weight in self.weights.items())

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


def similarity_of(cosine: float, calibration: Calibration) -> float:
    """Map the cosine of two texts to 0-1, from unrelated to identical."""
    return _clipped((cosine - calibration.unrelated) / calibration.reach)


def similarity_of_tokens(cosine: float, calibration: Calibration) -> float:
    """Map the mean of each question token's best cosine in a passage to 0-1."""
    return similarity_of(cosine + calibration.tokens_lower, calibration)


ScorePartName = Literal["meaning", "tokens", "beginning", "words", "document_words", "context", "model"]


@dataclass(frozen=True, slots=True)
class ScorePart:
    """One part of a score: its value in 0-1, and its weight. The score is the sum of the products, within 0-1.

    `meaning` is the similarity of the whole texts, `tokens` that of their tokens, `beginning` that of the document's
    first passage, `words` the keyword match, `document_words` that of the whole document, `context` the similarity to
    the caller's own document. `model` is the relevance by a reranking model, which decides alone.
    """

    name: ScorePartName
    value: float
    weight: float


@dataclass(frozen=True, slots=True)
class WordWeights:
    """The weights of the keyword matches of passages and of documents, relative to similarity.

    `most` is their greatest sum for a question. It scales the scores, so that a passage in another language can reach
    full relevance.
    """

    passage: float = 0.0
    document: float = 0.0
    most: float = 0.0

    @classmethod
    def of(cls, passage: float, document: float, coverage: float, document_coverage: float) -> WordWeights:
        """Return the weights, given the best overlap of a passage, and of a document."""
        return cls(passage, document, passage * coverage + document * document_coverage)


@dataclass(frozen=True, slots=True)
class PassageMatch:
    """The match of one passage with a question, each part in 0-1. A part that was not measured is None."""

    whole: float
    """The similarity of the whole texts."""
    strength: float
    """The keyword match."""
    document: float | None = None
    """The keyword match of the whole document. Until it is known, the passage's stands for it."""
    tokens: float | None = None
    """The similarity of the token vectors."""
    beginning: float | None = None
    """The similarity of the document's first passage, if the passage is a later one."""
    context: float | None = None
    """The similarity to the caller's own document."""
    relevance: float | None = None
    """The relevance by a reranking model, which decides alone."""

    @property
    def similarity(self) -> float:
        """The finest similarity that was measured."""
        return next(each for each in (self.relevance, self.tokens, self.whole) if each is not None)

    def score(self, calibration: Calibration, words: WordWeights) -> float:
        """Return one score in 0-1: the weighted sum of its parts."""
        return _clipped(sum(part.value * part.weight for part in self.parts(calibration, words)))

    def parts(self, calibration: Calibration, words: WordWeights) -> list[ScorePart]:
        """Return the parts of the score."""
        if self.relevance is not None:
            return [ScorePart("model", self.relevance, 1.0)]
        question, context = _shares(self.context, CONTEXT)
        similarity = question / (1 + words.most)
        passage, beginning = _shares(self.beginning, calibration.beginning)
        whole, tokens = _shares(self.tokens, calibration.late_interaction)
        weighted: list[tuple[ScorePartName, float | None, float]] = [
            ("meaning", self.whole, similarity * passage * whole),
            ("tokens", self.tokens, similarity * passage * tokens),
            ("beginning", self.beginning, similarity * beginning),
            ("words", self.strength, similarity * words.passage),
            ("document_words", self.strength if self.document is None else self.document, similarity * words.document),
            ("context", self.context, context),
        ]
        return [ScorePart(name, value, weight) for name, value, weight in weighted if value is not None]


def _shares(other: float | None, weight: float) -> tuple[float, float]:
    """Return the weights of a value and of another one that may not have been measured."""
    return (1.0, 0.0) if other is None else (1 - weight, weight)


def _clipped(value: float) -> float:
    return min(1.0, max(0.0, value))
