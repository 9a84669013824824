"""The functions whose policies tests compare with the actions that they use."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T", bound="Callable[..., None]")

MEASURED: set[str] = set()


def measures(*functions: str) -> Callable[[T], T]:
    """Record that the decorated test measures the policies of these functions."""

    def decorate(test: T) -> T:
        MEASURED.update(functions)
        return test

    return decorate
