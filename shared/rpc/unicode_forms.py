"""Unicode's normal forms of outside text, in linear time."""

import re
import unicodedata
from typing import Final, Literal

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]

_PART: Final = 256
"""Marks on one letter are sorted in time that grows with the square of their number. No writing has as many."""
_JOINING: Final = re.compile("[\u1160-\u11ff\u3130-\u318f\uff9e-\uffdc]")
"""Vowels and endings of Hangul, and half-width sound marks."""


def normalize(form: Form, text: str) -> str:
    """Return the normal form of a text. Only a run of hundreds of marks may differ from it."""
    if len(text) <= _PART or text.isascii():
        return unicodedata.normalize(form, text)
    parts, start = [], 0
    while start < len(text):
        end = _part_end(text, start)
        parts.append(unicodedata.normalize(form, text[start:end]))
        start = end
    return "".join(parts)


def _part_end(text: str, start: int) -> int:
    """Return the end of a part, before a character that cannot be joined to the one before it, if one is near."""
    last = start + _PART
    if last >= len(text):
        return len(text)
    return next((end for end in range(last, start + _PART // 2, -1) if _begins(text[end])), last)


def _begins(character: str) -> bool:
    """Return True for a character that never changes with what precedes it."""
    return character.isascii() or not (unicodedata.category(character).startswith("M") or _JOINING.match(character))
