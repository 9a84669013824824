"""Sparse BM25 vectors: a term's weight in a passage; how rare it is, the store knows."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass
from typing import Final

from shared.knowledge.tokenizer import tokenize

SATURATION: Final = 1.2
LENGTH: Final = 0.75
USUAL_LENGTH: Final = 200
"""Words of a usual passage; a constant, so that a vector never changes for what else is indexed."""
TWIN: Final = 0.25
"""What a match without accents counts where the question has them: it may be another word."""


@dataclass(frozen=True, slots=True)
class SparseTerms:
    """Terms by number, each once, with their weights."""

    numbers: list[int]
    weights: list[float]


def passage_terms(text: str) -> SparseTerms:
    """What a passage holds, each accented word also without its accents."""
    found = Counter(tokenize(text))
    counts: Counter[int] = Counter()
    for word, count in found.items():
        counts[number(word.term)] += count
        if word.twin:
            counts[number(word.twin)] += count
    floor = SATURATION * (1 - LENGTH + LENGTH * found.total() / USUAL_LENGTH)
    return SparseTerms(list(counts), [count * (SATURATION + 1) / (count + floor) for count in counts.values()])


def question_terms(text: str) -> SparseTerms:
    """What a question asks for: its words, and with less weight their twins without accents."""
    weights: dict[int, float] = {}
    for word in tokenize(text):
        weights[number(word.term)] = 1.0
        if word.twin:
            weights.setdefault(number(word.twin), TWIN)
    return SparseTerms(list(weights), list(weights.values()))


def number(term: str) -> int:
    """The same number for the same term, everywhere and for ever."""
    return zlib.crc32(term.encode("utf-8", "surrogatepass"))
