"""Texts as the pieces of words that e5 knows: the likeliest way to cut each word (SentencePiece's unigram model)."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from shared.knowledge.embedding.weights import Vocabulary

_SPACE: Final = "▁"
_RUNS: Final = re.compile(" {2,}")
_UNKNOWN_COSTS: Final = 10
_IMPOSSIBLE: Final = float("-inf")


class Pieces:
    """Cuts texts into pieces, as the model was trained on them."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._unknown = vocabulary.unknown
        # Marks such as <s> are the model's own: a text that holds one spells it out.
        self._known = {
            piece: (at, score)
            for at, (piece, score) in enumerate(zip(vocabulary.pieces, vocabulary.scores, strict=True))
            if piece and not (piece.startswith("<") and piece.endswith(">"))
        }
        self._replacements = vocabulary.replacements | {0: " "}
        self._longest = max(map(len, self._known))
        self._reach: dict[str, int] = {}
        for piece in self._known:
            self._reach[piece[0]] = max(len(piece), self._reach.get(piece[0], 0))
        self._unknown_score = min(vocabulary.scores) - _UNKNOWN_COSTS
        self._word = lru_cache(maxsize=50_000)(self._cut)

    def __call__(self, text: str, limit: int) -> list[int]:
        """The numbers of the first `limit` pieces of `text`."""
        start = unicodedata.normalize("NFC", text[: limit * self._longest]).translate(self._replacements)
        found: list[int] = []
        for word in _RUNS.sub(" ", start).removeprefix(" ").split(" "):
            found += self._word(_SPACE + word)
            if len(found) >= limit:
                break
        return found[:limit]

    def _cut(self, word: str) -> tuple[int, ...]:
        size = len(word)
        best = [0.0] + [_IMPOSSIBLE] * size
        last = [(self._unknown, 0)] * (size + 1)
        for start in range(size):
            for end in range(start + 1, min(size, start + self._reach.get(word[start], 1)) + 1):
                piece = self._known.get(word[start:end])
                number, score = piece or (self._unknown, self._unknown_score)
                if (piece or end == start + 1) and best[start] + score > best[end]:
                    best[end], last[end] = best[start] + score, (number, start)
        pieces = []
        end = size
        while end:
            number, end = last[end]
            pieces.append(number)
        return tuple(reversed(pieces))
