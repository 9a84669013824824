"""Pages that fit in a function's response."""

import json
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

T = TypeVar("T")

MAX_PAGE_BYTES: Final = 5 * 1024 * 1024
"""Lambda limits a response to 6 MB. Items count with their JSON escaping."""


class SizeBudget:
    """The bytes left on a page, after `reserved` content; `nested` counts the JSON texts around the page's items."""

    def __init__(self, reserved: Any = "", *, nested: int = 0) -> None:
        self._nested = nested
        self._left = MAX_PAGE_BYTES - answer_bytes(reserved, nested=nested)

    def try_add(self, value: Any) -> bool:
        """Deduct the size of `value`. Return True if it fits."""
        self._left -= answer_bytes(value, nested=self._nested)
        return self._left >= 0


def take_page(
    items: Iterable[T], limit: int | None, as_json: Callable[[T], Any], budget: SizeBudget
) -> tuple[list[T], T | None]:
    """Return the first items, as many as `limit` and `budget` allow but at least one, and the next item if any."""
    page: list[T] = []
    for item in items:
        if len(page) == limit or not (budget.try_add(as_json(item)) or not page):
            return page, item
        page.append(item)
    return page, None


def answer_bytes(value: Any, *, nested: int = 0) -> int:
    """Return the size of `value` in a response, inside `nested` further JSON texts."""
    text = json.dumps(value, ensure_ascii=False)
    for _ in range(nested + 1):
        text = json.dumps(text, ensure_ascii=False)
    return len(text.encode("utf-8"))
