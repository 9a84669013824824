"""Pages that fit in a function's response."""

from collections.abc import Callable, Iterable
from json.encoder import encode_basestring
from typing import Any, Final, TypeVar

from pydantic_core import to_json

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
    items: Iterable[T], limit: int | None, budget: SizeBudget, value_of: Callable[[T], Any] | None = None
) -> tuple[list[T], T | None]:
    """Return the first items, as many as `limit` and `budget` allow but at least one, and the next item if any.

    A response has the values of items, JSON or dataclasses: the items themselves unless `value_of` returns them.
    """
    page: list[T] = []
    for item in items:
        if len(page) == limit or not (budget.try_add(value_of(item) if value_of else item) or not page):
            return page, item
        page.append(item)
    return page, None


def answer_bytes(value: Any, *, nested: int = 0) -> int:
    """Return the size of `value` in a response, inside `nested` further JSON texts."""
    text = to_json(value).decode("utf-8")
    for _ in range(nested + 1):
        text = encode_basestring(text)
    return len(text.encode("utf-8"))
