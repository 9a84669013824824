"""Size estimates in tokens for any language, and cutting of large texts at the best boundaries."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

LIMIT: Final = 380
"""The maximum size of a chunk. With its headings it fits into 512 tokens: estimates are accurate to a third."""
TARGET: Final = 280
"""A chunk of this size takes no further block. Larger blocks are cut to this size, so that their headings fit too."""

_IDEOGRAPHS: Final = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_PARTS: Final = re.compile(rf"([{_IDEOGRAPHS}]+)|([^\W_{_IDEOGRAPHS}]+)|([^\w\s]|_)")
_TOKENS_PER_IDEOGRAPH: Final = 0.85
_LETTERS_PER_TOKEN: Final = 3.0
_ASCII_LETTERS_PER_TOKEN: Final = 4.5
_DIGITS_PER_TOKEN: Final = 2.0
_BOUNDARIES: Final = (
    re.compile(r"(?<=\n)(?=[^\S\n]*\n)"),
    re.compile(r"(?<=\n)"),
    re.compile(r"(?<=[.!?;:…]\s)|(?<=[。！？；：])"),
    re.compile(r"(?<=\s)(?=\S)"),
)


@lru_cache(maxsize=256)  # a block is measured when it is read, and again when it is grouped
def size(text: str) -> float:
    """Estimate the tokens of `text` for a multilingual embedder."""
    total = 0.0
    for ideographs, word, _ in _PARTS.findall(text):
        if word:
            total += _size_of(word)
        else:
            total += len(ideographs) * _TOKENS_PER_IDEOGRAPH or 1
    return total


def fit(text: str) -> list[str]:
    """Return `text` whole if it fits into a chunk, else in pieces."""
    return [text] if size(text) <= LIMIT else cut(text)


def cut(text: str, limit: float = TARGET) -> list[str]:
    """Cut `text` into pieces of at most `limit`. Joined, they are `text`."""
    return list(_pieces(text, limit, 0))


def _size_of(word: str) -> float:
    letters = _LETTERS_PER_TOKEN
    if word.isascii():
        letters = _ASCII_LETTERS_PER_TOKEN if word.isalpha() else _DIGITS_PER_TOKEN
    return max(1, len(word) / letters)


def _pieces(text: str, limit: float, level: int) -> Iterator[str]:
    if size(text) <= limit:
        yield text
        return
    if level == len(_BOUNDARIES):
        # A character is at most one token.
        step = max(1, int(limit))
        yield from (text[start : start + step] for start in range(0, len(text), step))
        return
    piece, piece_size = "", 0.0
    for unit in _BOUNDARIES[level].split(text):
        unit_size = size(unit)
        if piece and piece_size + unit_size > limit:
            yield piece
            piece, piece_size = "", 0.0
        if unit_size > limit:
            yield from _pieces(unit, limit, level + 1)
        else:
            piece += unit
            piece_size += unit_size
    if piece:
        yield piece
