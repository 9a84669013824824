"""SentencePiece unigram tokenizer of e5: the most probable segmentation of each word."""

import re
from functools import lru_cache
from typing import Final, TypedDict

from shared.rpc.unicode_forms import normalize

_SPACE: Final = "▁"
_RUNS: Final = re.compile(" {2,}")
_UNKNOWN_COSTS: Final = 10
_IMPOSSIBLE: Final = float("-inf")


class Vocabulary(TypedDict):
    """The tokens that the model knows, as its files list them."""

    pieces: list[str]
    """By number; control tokens, which belong to the model, are empty."""
    longest: dict[str, int]
    """The length of the longest piece that begins with a character."""
    replacements: dict[str, str]
    """The replacements of characters before tokenization, by code point."""
    begin: int
    end: int
    unknown: int


class SentencePiece:
    """Tokenizes texts as in the model's training."""

    def __init__(self, vocabulary: Vocabulary, scores: list[float]) -> None:
        self._unknown = vocabulary["unknown"]
        self._numbers = {piece: number for number, piece in enumerate(vocabulary["pieces"])}
        self._scores = scores
        self._replacements = {int(code): text for code, text in vocabulary["replacements"].items()} | {0: " "}
        self._reach = vocabulary["longest"]
        self._longest = max(self._reach.values())
        self._unknown_score = min(scores) - _UNKNOWN_COSTS
        self._word = lru_cache(maxsize=50_000)(self._segment)

    def __call__(self, text: str, limit: int) -> list[int]:
        """Return the numbers of the first `limit` tokens of `text`."""
        start = normalize("NFC", text[: limit * self._longest]).translate(self._replacements)
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
                number = self._numbers.get(word[start:end])
                score = self._unknown_score if number is None else self._scores[number]
                if (number is not None or end == start + 1) and best[start] + score > best[end]:
                    best[end], last[end] = best[start] + score, (self._unknown if number is None else number, start)
        pieces = []
        end = size
        while end:
            number, end = last[end]
            pieces.append(number)
        return tuple(reversed(pieces))
