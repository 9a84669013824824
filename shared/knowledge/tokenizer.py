"""The words by which texts are found, in every script: Vietnamese, Chinese and English first of all."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

# Scripts that part no words by spaces: Thai to Myanmar, Khmer, kana, Han, Hangul (whose words take endings).
_UNSPACED: Final = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    r"\uf900-\ufaff\U00020000-\U0003ffff"
)
# Marks that belong to the letter before them, which \w leaves out.
_MARKS: Final = r"\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0900-\u0dff"
_PIECES: Final = re.compile(rf"(?P<unspaced>[{_UNSPACED}]+)|(?P<word>(?:[^\W_{_UNSPACED}]|[{_MARKS}])+)")
_HUMPS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ENGLISH: Final = re.compile(r"[a-z]{3,}")
_VOWEL: Final = re.compile(r"[aeiouy]")
_LONGEST: Final = 64

# Both ways to place a Vietnamese tone are in use: hòa and hoà, khỏe and khoẻ, thúy and thuý.
_TONES: Final = {
    first + "aey"[at]: "oou"[at] + second
    for at, pairs in enumerate((("òóỏõọ", "àáảãạ"), ("òóỏõọ", "èéẻẽẹ"), ("ùúủũụ", "ỳýỷỹỵ")))
    for first, second in zip(*pairs, strict=True)
}
_TONE: Final = re.compile("|".join(_TONES))
_UNDECOMPOSED: Final = str.maketrans({"đ": "d", "ø": "o", "ł": "l", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe"})


class Token(NamedTuple):
    """One word as it is looked up, and its twin without accents where it has some."""

    term: str
    twin: str | None = None


def tokenize(text: str) -> Iterator[Token]:
    """The words of `text` in their order; runs of unspaced script as characters and pairs of characters."""
    for unspaced, word in _PIECES.findall(unicodedata.normalize("NFKC", text)):
        if word:
            yield from _word(word[:_LONGEST])
        for at in range(len(unspaced)):
            yield from _character(unspaced[at : at + 2])


@lru_cache(maxsize=100_000)
def _character(pair: str) -> tuple[Token, ...]:
    """A character, and with the one that follows it, if any does."""
    return tuple(dict.fromkeys((Token(pair[0]), Token(pair))))


@lru_cache(maxsize=100_000)
def _word(word: str) -> tuple[Token, ...]:
    found = [_spelled(word)]
    if not word.islower() and len(humps := _HUMPS.findall(word)) > 1 and "".join(humps) == word:
        found += [_spelled(hump) for hump in humps]
    return tuple(found)


def _spelled(word: str) -> Token:
    lower = _TONE.sub(lambda pair: _TONES[pair[0]], word.casefold())
    plain = fold_diacritics(lower)
    return Token(stem(lower)) if plain == lower else Token(lower, stem(plain))


def fold_diacritics(word: str) -> str:
    """`word` as it is typed by who types no accents."""
    letters = unicodedata.normalize("NFD", word.translate(_UNDECOMPOSED))
    return unicodedata.normalize("NFC", "".join(each for each in letters if not "\u0300" <= each <= "\u036f"))


def stem(word: str) -> str:
    """`word` without the commonest English endings; other words, and short ones, as they are."""
    if not _ENGLISH.fullmatch(word):
        return word
    if word.endswith("ies") and len(word) > 4:
        word = f"{word[:-3]}y"
    elif word.endswith("s") and len(word) > 3 and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) > 2 and _VOWEL.search(rest):
            doubled = rest[-1] == rest[-2] and rest[-1] not in "lsz"
            word = rest[:-1] if doubled else rest
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word
