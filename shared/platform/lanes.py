"""The two lanes of work that calls compete for: urgent work, for which a caller waits, goes before bulk work."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

Lane = Literal["urgent", "bulk"]

_lane: Final[ContextVar[Lane]] = ContextVar("lane", default="urgent")


def current_lane() -> Lane:
    """Return the lane of the current call, which is urgent unless the call says otherwise."""
    return _lane.get()


@contextmanager
def bulk_lane() -> Iterator[None]:
    """Mark the work inside the block, its background threads included, as work that no caller waits for."""
    token = _lane.set("bulk")
    try:
        yield
    finally:
        _lane.reset(token)
