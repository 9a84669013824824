"""BM25 as sparse vectors: each term's weight in a passage. The vector store adds the terms' rarity (IDF)."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from shared.search.tokenizer import tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence

SATURATION: Final = 1.2
LENGTH: Final = 0.75
USUAL_LENGTH: Final = 200
"""Words of an average passage. A constant, so that a vector never depends on what else is indexed."""
TWIN: Final = 0.25
"""Weight of a match without diacritics if the question has them: it may be another word."""


@dataclass(frozen=True, slots=True)
class SparseTerms:
    """Distinct term numbers with their weights."""

    numbers: list[int]
    weights: list[float]


def passage_terms(text: str, before: Sequence[str] = (), weight: float = 0.0) -> SparseTerms:
    """Return the terms of a passage. The words of the texts `before` it count, too, each with this weight."""
    counts, length = term_counts(text)
    weighted: dict[int, float] = dict(counts)
    for each in before:
        for term, count in term_counts(each)[0].items():
            weighted[term] = weighted.get(term, 0.0) + weight * count
    floor = SATURATION * (1 - LENGTH + LENGTH * length / USUAL_LENGTH)
    return SparseTerms(list(weighted), [count * (SATURATION + 1) / (count + floor) for count in weighted.values()])


def term_counts(text: str) -> tuple[Counter[int], int]:
    """Count each term of a text, and all words. Each word with diacritics also counts without them."""
    tokens = Counter(tokenize(text))
    counts: Counter[int] = Counter()
    for word, count in tokens.items():
        counts[number(word.term)] += count
        if word.twin:
            counts[number(word.twin)] += count
    return counts, tokens.total()


def question_terms(text: str, limit: int | None = None) -> SparseTerms:
    """Return the first `limit` terms of a question: its words, and with less weight their twins without diacritics."""
    weights: dict[int, float] = {}
    for word in tokenize(text):
        weights[number(word.term)] = 1.0
        if word.twin:
            weights.setdefault(number(word.twin), TWIN)
    return SparseTerms(list(weights)[:limit], list(weights.values())[:limit])


def number(term: str) -> int:
    """Return a stable number for a term."""
    return zlib.crc32(term.encode("utf-8", "surrogatepass"))
