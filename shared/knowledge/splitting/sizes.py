"""How large a text is for an embedder, in any language, and cutting what is too large at the best place there is."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT: Final = 380
"""No chunk is larger. An embedder of 512 tokens takes it whole, with its headings: sizes are right to a third."""
TARGET: Final = 280
"""From here on, a chunk takes in no further block; what is too large is cut to this, so that its headings fit too."""

_IDEOGRAPHS: Final = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_PARTS: Final = re.compile(rf"([{_IDEOGRAPHS}]+)|([^\W_{_IDEOGRAPHS}]+)|([^\w\s]|_)")
_TOKENS_AN_IDEOGRAPH: Final = 0.85
_LETTERS_A_TOKEN: Final = 3.0
_ASCII_LETTERS_A_TOKEN: Final = 4.5
_DIGITS_A_TOKEN: Final = 2.0
_BOUNDARIES: Final = (
    re.compile(r"(?<=\n)(?=\s*\n)"),
    re.compile(r"(?<=\n)"),
    re.compile(r"(?<=[.!?;:…]\s)|(?<=[。！？；：])"),
    re.compile(r"(?<=\s)(?=\S)"),
)


@lru_cache(maxsize=256)  # a block is measured when it is read, and again when it is gathered with others
def size(text: str) -> float:
    """About how many tokens `text` has for a multilingual embedder."""
    total = 0.0
    for ideographs, word, _ in _PARTS.findall(text):
        if word:
            total += _size_of(word)
        else:
            total += len(ideographs) * _TOKENS_AN_IDEOGRAPH or 1
    return total


def fit(text: str) -> list[str]:
    """`text` as it is where a chunk can hold it, else in pieces."""
    return [text] if size(text) <= LIMIT else cut(text)


def cut(text: str, limit: float = TARGET) -> list[str]:
    """Pieces of `text` that are none larger than `limit`, and together are `text`."""
    return list(_pieces(text, limit, 0))


def _size_of(word: str) -> float:
    letters = _LETTERS_A_TOKEN
    if word.isascii():
        letters = _ASCII_LETTERS_A_TOKEN if word.isalpha() else _DIGITS_A_TOKEN
    return max(1, len(word) / letters)


def _pieces(text: str, limit: float, level: int) -> Iterator[str]:
    if size(text) <= limit:
        yield text
        return
    if level == len(_BOUNDARIES):
        # No character is more than a token.
        step = max(1, int(limit))
        yield from (text[start : start + step] for start in range(0, len(text), step))
        return
    gathered, gathered_size = "", 0.0
    for unit in _BOUNDARIES[level].split(text):
        unit_size = size(unit)
        if gathered and gathered_size + unit_size > limit:
            yield gathered
            gathered, gathered_size = "", 0.0
        if unit_size > limit:
            yield from _pieces(unit, limit, level + 1)
        else:
            gathered += unit
            gathered_size += unit_size
    if gathered:
        yield gathered
