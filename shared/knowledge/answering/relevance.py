"""Relevance filter: drops passages that do not bear on the question.

Unrelated texts differ in similarity: texts of one language are more similar than texts of two, Chinese ones most of
all, and Vietnamese ones share syllables. So each language has a floor of its own. At these floors both kinds of error
are rare, measured on questions to half of an encyclopaedia that the other half answers (docs/knowledge.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from shared.knowledge.language_detection import detect_language
from shared.knowledge.tokenizer import tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.knowledge.hybrid_search import Measure
    from shared.knowledge.passages import SearchHit

_FLOORS: Final = {"en": 0.70, "vi": 0.77, "zh": 0.80}
_DEFAULT_FLOOR: Final = 0.74
_CODE_FLOOR: Final = 0.69
"""Code and tables are in no language, or in another one than their questions."""
_CROSS_LANGUAGE_FLOOR: Final = 0.50
_CROSS_LANGUAGE_GAP: Final = 0.15
"""The largest distance to the best hit for a passage in another language; that floor is low."""
_OVERLAP_WEIGHT: Final = 0.25
"""Weight of the share of the question's words that a passage contains, relative to similarity."""
_WHOLE_VECTORS_LOWER: Final = 0.2
"""Whole vectors are less similar than token vectors by this much."""
_ALL_WORDS: Final = 0.9
"""A passage with nearly all rare words of a question is relevant, however little a name means to a model."""
_MODEL_FLOOR: Final = 0.15


def filter_relevant(question: str, hits: Sequence[SearchHit], measure: Measure) -> list[SearchHit]:
    """Return the hits that are relevant to the question."""
    if not any(tokenize(question)):
        return []
    if measure == "model":
        return [hit for hit in hits if hit.similarity >= _MODEL_FLOOR]
    question_language = detect_language(question)
    offset = _WHOLE_VECTORS_LOWER if measure == "meaning" else 0.0
    best = max((_closeness(hit) for hit in hits), default=0.0)
    return [hit for hit in hits if _closeness(hit) >= _floor(question_language, hit, best + offset) - offset]


def _closeness(hit: SearchHit) -> float:
    return hit.similarity + _OVERLAP_WEIGHT * hit.overlap


def _floor(question_language: str, hit: SearchHit, best: float) -> float:
    passage_language = detect_language(hit.passage.text)
    if hit.overlap >= _ALL_WORDS:
        return _CROSS_LANGUAGE_FLOOR + _OVERLAP_WEIGHT * hit.overlap
    if question_language and passage_language and question_language != passage_language:
        return max(_CROSS_LANGUAGE_FLOOR, best - _CROSS_LANGUAGE_GAP)
    if hit.passage.content_type != "prose" and not passage_language:
        return _CODE_FLOOR
    return _FLOORS.get(question_language or passage_language, _DEFAULT_FLOOR)
