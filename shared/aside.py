"""Work beside a request's own thread, which waits for it as long as there is time, and no longer."""

from __future__ import annotations

import math
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_AT_ONCE: Final = 64
"""What was begun and is waited for no longer runs on: more of it than this waits, and so is given up in its turn."""

Result = TypeVar("Result")


def begin(work: Callable[[], Result]) -> Future[Result]:
    """Begin `work`, as part of the call under way."""
    return _threads().submit(copy_context().run, work)


def within(seconds: float, work: Callable[[], Result]) -> Result:
    """What `work` gives, or `TimeoutError` once `seconds` are over; it is not begun where there are none."""
    if seconds == math.inf:
        return work()
    if seconds <= 0:
        raise TimeoutError
    return outcome(begin(work), seconds)


def outcome(begun: Future[Result], seconds: float) -> Result:
    """What was begun gives, or `TimeoutError` once `seconds` are over."""
    try:
        return begun.result(timeout=max(0.0, seconds))
    except TimeoutError:
        begun.cancel()
        raise


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="aside")
