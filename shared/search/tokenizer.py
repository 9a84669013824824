"""Tokenizer for every script, tuned for Vietnamese, Chinese and English."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from shared.rpc.unicode_forms import normalize

# Scripts without spaces between words: Thai to Myanmar, Khmer, kana, Han, and Hangul (whose words take endings).
_UNSPACED: Final = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    r"\uf900-\ufaff\U00020000-\U0003ffff"
)
# Combining marks that belong to the preceding letter, which \w does not match.
_MARKS: Final = r"\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0900-\u0dff"
PIECES: Final = re.compile(rf"(?P<unspaced>[{_UNSPACED}]+)|(?P<word>(?:[^\W_{_UNSPACED}]++|[{_MARKS}]++)++)")
_CAMEL_CASE: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ENGLISH: Final = re.compile(r"[a-z]{3,}")
_VOWEL: Final = re.compile(r"[aeiouy]")
_LETTERS: Final = re.compile(r"[^\W_]+")
_MAX_WORD: Final = 64
_MAX_REPEATED: Final = 3
"""The longest run of one character that may be a word, such as "www"."""

# Vietnamese tone marks have two placements in use: hòa and hoà, khỏe and khoẻ, thúy and thuý.
_TONES: Final = {
    first + "aey"[at]: "oou"[at] + second
    for at, pairs in enumerate((("òóỏõọ", "àáảãạ"), ("òóỏõọ", "èéẻẽẹ"), ("ùúủũụ", "ỳýỷỹỵ")))
    for first, second in zip(*pairs, strict=True)
}
_TONE_PAIR: Final = re.compile("|".join(_TONES))
_NO_DECOMPOSITION: Final = str.maketrans({"đ": "d", "ø": "o", "ł": "l", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe"})

# They say nothing by themselves. Words that are names or abbreviations too, such as "it", "can" or "hay", are not here.
_STOP_ENGLISH: Final = (
    "a am an and are as at be been but by for from if in is of on or so than that the then to was were with"
)
_STOP_POINTING: Final = "these this those"
_STOP_VIETNAMESE: Final = "các cho của cũng là mà những nhưng này nếu như ở rằng sẽ thì và vì với đang đã để đó hoặc"
_STOP_WORDS: Final = frozenset(f"{_STOP_ENGLISH} {_STOP_POINTING} {_STOP_VIETNAMESE}".split())
_STOP_CHARACTERS: Final = dict.fromkeys(map(ord, "的了和与與及或是在也都就而着吗嗎呢吧啊呀之这這那个個们們把被于於很"))


class Token(NamedTuple):
    """A normalized word, and its twin without diacritics if it has some."""

    term: str
    twin: str | None = None


def has_content_word(text: str) -> bool:
    """Return True if `text` has a run of letters and digits other than stop words and long runs of one character.

    The form NFKC would turn symbols such as U+FDFD into words.
    """
    runs = (run for run in _LETTERS.findall(normalize("NFC", text)) if len(run) <= _MAX_REPEATED or len(set(run)) > 1)
    return not all(map(_is_stop_word, runs))


def _is_stop_word(run: str) -> bool:
    rest = run.casefold().translate(_STOP_CHARACTERS)
    return not rest or rest in _STOP_WORDS


def tokenize(text: str) -> Iterator[Token]:
    """Yield the words of `text` in order. Scripts without spaces yield characters and pairs of characters."""
    for unspaced, word in PIECES.findall(normalize("NFKC", text)):
        if word:
            yield from _word(word[:_MAX_WORD])
        for at in range(len(unspaced)):
            yield from _character(unspaced[at : at + 2])


@lru_cache(maxsize=100_000)
def _character(pair: str) -> tuple[Token, ...]:
    """Return the first character, and the pair if there are two."""
    return tuple(dict.fromkeys((Token(pair[0]), Token(pair))))


@lru_cache(maxsize=100_000)
def _word(word: str) -> tuple[Token, ...]:
    tokens = [_token(word)]
    if not word.islower() and len(parts := _CAMEL_CASE.findall(word)) > 1 and "".join(parts) == word:
        tokens += [_token(part) for part in parts]
    return tuple(tokens)


def _token(word: str) -> Token:
    lower = _TONE_PAIR.sub(lambda pair: _TONES[pair[0]], word.casefold())
    plain = fold_diacritics(lower)
    return Token(stem(lower)) if plain == lower else Token(lower, stem(plain))


def fold_diacritics(word: str) -> str:
    """Return `word` without diacritics."""
    letters = unicodedata.normalize("NFD", word.translate(_NO_DECOMPOSITION))
    return unicodedata.normalize("NFC", "".join(each for each in letters if not "\u0300" <= each <= "\u036f"))


def stem(word: str) -> str:
    """Return `word` without the most common English endings. Other words and short ones stay unchanged."""
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
