"""Names that people tell apart by eye: of collections, of projects and of devices."""

import re
import unicodedata
from typing import Final

from shared.rpc.errors import FieldProblem, InvalidParams
from shared.rpc.whitespace import INVISIBLE

_INVISIBLE: Final = re.compile(f"[{INVISIBLE}]")
_WORD: Final = re.compile(r"[^\W\d_]+")
_LATIN_LOOK_ALIKES: Final = re.compile("[аеорсухіїјѕһԁԛԝѵӏАВЕКМНОРСТУХЅІЇЈԌԚԜοναικρυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧօսհոցԼՕՍ]")
"""Letters of Cyrillic, Greek and Armenian that most fonts draw like a Latin one."""
_FLAG: Final = re.compile("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f")
"""A region's flag: its letters are invisible tags."""
_NON_JOINER, _JOINER, _TEXT_STYLE, _EMOJI_STYLE, _KEYCAP = "\u200c", "\u200d", "\ufe0e", "\ufe0f", "\u20e3"
_VIRAMA: Final = 9
"""The combining class of marks that joiners may follow in Indic scripts."""


def normalize_name(name: str) -> str:
    """Return the composed form (NFC), so that equal letters are equal names however a keyboard writes them."""
    return unicodedata.normalize("NFC", name)


def stored_forms(name: str) -> tuple[str, ...]:
    """Return the keys under which a name may be stored. Names were not normalised at first."""
    return tuple(dict.fromkeys((name, unicodedata.normalize("NFD", name))))


def refuse_deceptive_name(name: str, field: str) -> None:
    """Raise InvalidParams if a new name can be mistaken for another."""
    problem = deception(name)
    if problem:
        raise InvalidParams(FieldProblem(field=field, message=problem))


def deception(name: str) -> str | None:
    """Describe a character that is invisible or that looks like another, if the name has one."""
    return None if name.isascii() else _invisible(name) or _look_alike(name)


def _invisible(name: str) -> str | None:
    name = _FLAG.sub("\U0001f3f4", name)
    for match in _INVISIBLE.finditer(name):
        if not _is_meaningful(match[0], name[: match.start()], name[match.end() :]):
            return f"holds an invisible character, {_code_point(match[0])}"
    return None


def _is_meaningful(char: str, before: str, after: str) -> bool:
    """Return whether a joiner or a style selector is part of an emoji, or needed by the script around it."""
    last, following = before[-1:], after[:1]
    if char in (_TEXT_STYLE, _EMOJI_STYLE):
        return following == _KEYCAP or last == "ℹ" or (last > "\xa8" and not (last.isalnum() or _INVISIBLE.match(last)))
    if char not in (_JOINER, _NON_JOINER) or not following:
        return False
    if last and unicodedata.combining(last) == _VIRAMA:
        return True
    if char == _NON_JOINER:
        return bool(last) and {unicodedata.bidirectional(each) for each in (last, following)} == {"AL"}
    base = before.removesuffix(_EMOJI_STYLE)[-1:]
    return bool(base) and unicodedata.category(base) in ("So", "Sk") and unicodedata.category(following) in ("So", "Sm")


def _look_alike(name: str) -> str | None:
    for word in _WORD.findall(name):
        if (look_alike := _LATIN_LOOK_ALIKES.search(word)) and any(map(_is_latin, word)):
            return f"mixes Latin letters in '{word}' with a look-alike, {_code_point(look_alike[0])}"
    return None


def _is_latin(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith("LATIN ")


def _code_point(char: str) -> str:
    return f"U+{ord(char):04X} {unicodedata.name(char, '')}".rstrip()
