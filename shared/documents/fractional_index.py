"""Fractional indexing: order keys with room for another key between any two, so that an insertion rewrites none.

A key is a fraction in base 62 without trailing zeros. Its first six digits count insertions at either end; an
insertion between two keys takes as many more digits as it needs. Each key lies at a random point near the middle of
its gap, so that two concurrent insertions seldom choose the same key.
"""

import random
from itertools import count as counting
from typing import Final

MAX_LENGTH: Final = 48
"""A longer key makes its siblings be rebalanced."""
REBALANCED_LENGTH: Final = 24
"""Rebalancing aims at keys of at most this length, so that it is not needed again soon."""
CROWDED_LENGTH: Final = 12
"""Siblings with longer keys are crowded."""

_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BASE: Final = len(_DIGITS)
_WIDTH: Final = 6
_STEP: Final = _BASE**2


def between(left: str | None, right: str | None) -> str | None:
    """Return a key between two, None being an open end. Return None if they are equal."""
    if left is not None and left == right:
        return None
    return spread(left, right, 1)[0]


def spread(left: str | None, right: str | None, count: int) -> list[str]:
    """Return `count` ordered keys between two different ones, at about equal distances."""
    low, high, width = _gap(left, right, count)
    step = (high - low) // (count + 1)
    slack = step // 4
    return [
        _key(low + step * number + random.randint(-slack, slack), width)  # noqa: S311 - spreads writers, no secret
        for number in range(1, count + 1)
    ]


def _gap(left: str | None, right: str | None, count: int) -> tuple[int, int, int]:
    """Return two exclusive bounds with room for `count` keys between them, and their width in digits."""
    reach = _STEP * (count + 1)
    if left is None and right is None:
        return _BASE**_WIDTH // 2 - reach, _BASE**_WIDTH // 2 + reach, _WIDTH
    if left is None and right is not None and _number(right, _WIDTH) > reach:
        return _number(right, _WIDTH) - reach, _number(right, _WIDTH), _WIDTH
    if right is None and left is not None and _number(left, _WIDTH) + reach < _BASE**_WIDTH:
        return _number(left, _WIDTH), _number(left, _WIDTH) + reach, _WIDTH
    for width in counting(_WIDTH):
        low = _number(left or "", width)
        high = _number(right, width) if right is not None else _BASE**width
        if high - low >= _BASE * (count + 1):
            return low, high, width
    raise AssertionError("unreachable: a wider number always has room")


def _number(key: str, width: int) -> int:
    """Return the first `width` digits of `key` as a number."""
    number = 0
    for digit in key[:width].ljust(width, _DIGITS[0]):
        number = number * _BASE + _DIGITS.index(digit)
    return number


def _key(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, digit = divmod(number, _BASE)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits)).rstrip(_DIGITS[0])
