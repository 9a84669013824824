"""Relevance filter: drops passages that do not bear on the question.

Unrelated texts differ in similarity: texts of one language are more similar than texts of two, Chinese ones most of
all, and Vietnamese ones share syllables. So each language has a floor of its own. At these floors both kinds of error
are rare, measured on questions to half of an encyclopaedia that the other half answers (docs/knowledge.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from shared.search.embedding.models import current_space
from shared.search.language_detection import detect_language
from shared.search.tokenizer import tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.search.calibration import Calibration
    from shared.search.hybrid_search import Measure
    from shared.search.passages import SearchHit

_ALL_WORDS: Final = 0.9
"""A passage with nearly all rare words of a question is relevant, however little a name means to a model."""
_MODEL_FLOOR: Final = 0.15


def filter_relevant(question: str, hits: Sequence[SearchHit], measure: Measure) -> list[SearchHit]:
    """Return the hits that are relevant to the question."""
    if not any(tokenize(question)):
        return []
    if measure == "model":
        return [hit for hit in hits if hit.similarity >= _MODEL_FLOOR]
    return _RelevanceFloor(question, hits, current_space().calibration, with_tokens=measure == "parts").passed()


class _RelevanceFloor:
    """The floors of one question's hits, by the languages of both."""

    def __init__(
        self, question: str, hits: Sequence[SearchHit], calibration: Calibration, *, with_tokens: bool
    ) -> None:
        self._language = detect_language(question)
        self._hits = hits
        self._calibration = calibration
        self._offset = 0.0 if with_tokens else calibration.whole_texts_lower
        self._best = max((self._closeness(hit) for hit in hits), default=0.0)

    def passed(self) -> list[SearchHit]:
        """Return the hits at or above their floors."""
        return [hit for hit in self._hits if self._closeness(hit) >= self._floor(hit)]

    def _closeness(self, hit: SearchHit) -> float:
        return hit.similarity + self._offset + self._calibration.overlap_weight * hit.overlap

    def _floor(self, hit: SearchHit) -> float:
        calibration = self._calibration
        passage_language = detect_language(hit.passage.text)
        if hit.overlap >= _ALL_WORDS:
            return calibration.cross_language_floor + calibration.overlap_weight * hit.overlap
        if self._language and passage_language and self._language != passage_language:
            return max(calibration.cross_language_floor, self._best - calibration.cross_language_gap)
        if hit.passage.content_type != "prose" and not passage_language:
            return calibration.code_floor
        return calibration.language_floors.get(self._language or passage_language, calibration.default_floor)
