"""Accents that a question was typed without, taken from the passages that hold its words."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from shared.knowledge.tokenizer import tokenize

if TYPE_CHECKING:
    from collections.abc import Iterable

_PIECES: Final = re.compile(r"\w+|\W+")
_BEARING: Final = re.compile("[a-z]")


def lacks_diacritics(question: str) -> bool:
    """Whether `question` may have been typed without its accents: its letters could bear some, and none does."""
    found = list(tokenize(question))
    return not any(word.twin for word in found) and any(_BEARING.search(word.term) for word in found)


def restore_diacritics(question: str, texts: Iterable[str]) -> str:
    """`question`, each of its words with the accents that it mostly has in `texts`, if it has none of its own."""
    if not lacks_diacritics(question):
        return question
    spellings: dict[str, Counter[str]] = {}
    for text in texts:
        for word in tokenize(text):
            spellings.setdefault(word.twin or word.term, Counter())[word.term] += 1
    return "".join(_spelled(piece, spellings) for piece in _PIECES.findall(question))


def _spelled(piece: str, spellings: dict[str, Counter[str]]) -> str:
    found = list(tokenize(piece))
    if len(found) != 1 or found[0].term not in spellings:
        return piece
    commonest, _ = spellings[found[0].term].most_common(1)[0]
    return piece if commonest == found[0].term else commonest
