"""Restores the diacritics of a question from the passages that contain its words."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from shared.search.tokenizer import tokenize

_PIECES: Final = re.compile(r"\w+|\W+")
_ACCENTABLE: Final = re.compile("[a-z]")


def lacks_diacritics(question: str) -> bool:
    """Return True if `question` may have been typed without diacritics: its letters could have some, but none does."""
    words = list(tokenize(question))
    return not any(word.twin for word in words) and any(_ACCENTABLE.search(word.term) for word in words)


def restore_diacritics(question: str, texts: Iterable[str]) -> str:
    """Return `question` with each word spelled as most often in `texts`, unless it has diacritics of its own."""
    if not lacks_diacritics(question):
        return question
    asked = {word.term for word in tokenize(question)}
    spellings: dict[str, Counter[str]] = {}
    for text in texts:
        for word in tokenize(text):
            plain = word.twin or word.term
            if plain in asked:
                spellings.setdefault(plain, Counter())[word.term] += 1
    return "".join(_restore_word(piece, spellings) for piece in _PIECES.findall(question))


def _restore_word(piece: str, spellings: dict[str, Counter[str]]) -> str:
    words = list(tokenize(piece))
    if len(words) != 1 or words[0].term not in spellings:
        return piece
    commonest, _ = spellings[words[0].term].most_common(1)[0]
    return piece if commonest == words[0].term else commonest
