"""Which passages bear on a question at all.

Unrelated texts are not equally unlike: those in one language are more alike than those in two, Chinese ones most of
all, and Vietnamese ones share syllables. So there is a floor for each, at which of two kinds of error, measured on
questions to half of an encyclopaedia that the other half answers, both are rare (docs/knowledge.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from shared.knowledge.answering.language_detection import detect_language
from shared.knowledge.tokenizer import tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.knowledge.hybrid_search import Measure
    from shared.knowledge.passages import SearchHit

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


def filter_relevant(question: str, hits: Sequence[SearchHit], measure: Measure) -> list[SearchHit]:
    """Those that have to do with what is asked."""
    if not any(tokenize(question)):
        return []
    if measure == "model":
        return [hit for hit in hits if hit.similarity >= _BY_MODEL]
    asked = detect_language(question)
    lower = _WHOLES_LOWER if measure == "meaning" else 0.0
    best = max((_closeness(hit) for hit in hits), default=0.0)
    return [hit for hit in hits if _closeness(hit) >= _floor(asked, hit, best + lower) - lower]


def _closeness(hit: SearchHit) -> float:
    return hit.similarity + _WORDS * hit.overlap


def _floor(asked: str, hit: SearchHit, best: float) -> float:
    told = detect_language(hit.passage.text)
    if hit.overlap >= _ALL_WORDS:
        return _ACROSS + _WORDS * hit.overlap
    if asked and told and asked != told:
        return max(_ACROSS, best - _BEHIND)
    if hit.passage.content_type != "prose" and not told:
        return _NO_PROSE
    return _FLOORS.get(asked or told, _OTHER)
