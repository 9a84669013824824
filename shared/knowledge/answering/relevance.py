"""Which passages bear on a question at all.

Unrelated texts are not equally unlike: those in one language are more alike than those in two, Chinese ones most of
all, and Vietnamese ones share syllables. So there is a floor for each, at which of two kinds of error, measured on
questions to half of an encyclopaedia that the other half answers, both are rare (docs/knowledge.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from shared.knowledge.answering.languages import language_of
from shared.knowledge.words import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.knowledge.passages import Hit
    from shared.knowledge.retrieval import Measure

_FLOORS: Final = {"en": 0.70, "vi": 0.77, "zh": 0.80}
_OTHER: Final = 0.74
_NO_PROSE: Final = 0.69
"""Code and tables are in no language, or in another than what is asked of them."""
_ACROSS: Final = 0.50
_BEHIND: Final = 0.15
"""How far behind the best a passage in another language may be: the floor between languages is a low one."""
_WORDS: Final = 0.25
"""What the share of the question's words that a passage holds counts beside likeness."""
_WHOLES_LOWER: Final = 0.2
"""How much less alike whole meanings are than their parts."""
_ALL_WORDS: Final = 0.9
"""A passage that holds nearly all that is rare in a question bears on it, however little a name says to a model."""
_BY_MODEL: Final = 0.15


def bearing_on(question: str, hits: Sequence[Hit], measure: Measure) -> list[Hit]:
    """Those that have to do with what is asked."""
    if not any(words(question)):
        return []
    if measure == "model":
        return [hit for hit in hits if hit.similarity >= _BY_MODEL]
    asked = language_of(question)
    lower = _WHOLES_LOWER if measure == "meaning" else 0.0
    best = max((_closeness(hit) for hit in hits), default=0.0)
    return [hit for hit in hits if _closeness(hit) >= _floor(asked, hit, best + lower) - lower]


def _closeness(hit: Hit) -> float:
    return hit.similarity + _WORDS * hit.overlap


def _floor(asked: str, hit: Hit, best: float) -> float:
    told = language_of(hit.passage.text)
    if hit.overlap >= _ALL_WORDS:
        return _ACROSS + _WORDS * hit.overlap
    if asked and told and asked != told:
        return max(_ACROSS, best - _BEHIND)
    if hit.passage.content_type != "prose" and not told:
        return _NO_PROSE
    return _FLOORS.get(asked or told, _OTHER)
