"""SentencePiece unigram tokenizer of e5: the most probable segmentation of each word."""

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


class SentencePiece:
    """Tokenizes texts as in the model's training."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._unknown = vocabulary.unknown
        # Control tokens such as <s> belong to the model: in a text they are spelled out.
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
        self._word = lru_cache(maxsize=50_000)(self._segment)

    def __call__(self, text: str, limit: int) -> list[int]:
        """Return the numbers of the first `limit` tokens of `text`."""
        start = unicodedata.normalize("NFC", text[: limit * self._longest]).translate(self._replacements)
        numbers: list[int] = []
        for word in _RUNS.sub(" ", start).removeprefix(" ").split(" "):
            numbers += self._word(_SPACE + word)
            if len(numbers) >= limit:
                break
        return numbers[:limit]

    def _segment(self, word: str) -> tuple[int, ...]:
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
