"""Keys that order siblings: between any two there is room for a third, so that an insertion rewrites none.

A key is a fraction in base 62, without trailing zeros. Its first six digits count what is added at either end;
what is added between two keys takes as many more as it needs. Each lies anywhere in the middle of its gap, so that
two who insert at one place at once seldom choose the same key.
"""

from __future__ import annotations

import random
from itertools import count as counting
from typing import Final

LONGEST: Final = 48
"""Beyond this, room is made among the siblings."""
SHORT: Final = 24
"""What room is made for: keys up to this, so that it need not be made again soon."""
LONG: Final = 12
"""What lies in a crowded place has keys longer than this."""

_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BASE: Final = len(_DIGITS)
_WIDTH: Final = 6
_STEP: Final = _BASE**2


def between(left: str | None, right: str | None) -> str | None:
    """A key between two, either of which may be open; none where they are equal."""
    if left is not None and left == right:
        return None
    return spread(left, right, 1)[0]


def spread(left: str | None, right: str | None, count: int) -> list[str]:
    """`count` keys in order between two different ones, at about equal distances."""
    low, high, width = _gap(left, right, count)
    step = (high - low) // (count + 1)
    slack = step // 4
    return [
        _written(low + step * number + random.randint(-slack, slack), width)  # noqa: S311 - spreads writers, no secret
        for number in range(1, count + 1)
    ]


def _gap(left: str | None, right: str | None, count: int) -> tuple[int, int, int]:
    """Two numbers of some width between which `count` keys find room, each bound excluded."""
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
    """The first `width` digits of `key` as a number."""
    number = 0
    for digit in key[:width].ljust(width, _DIGITS[0]):
        number = number * _BASE + _DIGITS.index(digit)
    return number


def _written(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, digit = divmod(number, _BASE)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits)).rstrip(_DIGITS[0])
