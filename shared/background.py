"""Work beside a request's own thread, which waits for it as long as there is time, and no longer."""

from __future__ import annotations

import math
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


def submit(work: Callable[[], Result]) -> Future[Result]:
    """Begin `work`, as part of the call under way; what nobody waits for any more runs on to an end of its own."""
    # A thread each: work that waits for other work would wait for ever where both had to share a few.
    thread = ThreadPoolExecutor(1, thread_name_prefix="aside")
    begun = thread.submit(copy_context().run, work)
    thread.shutdown(wait=False)
    return begun


def run_with_timeout(seconds: float, work: Callable[[], Result]) -> Result:
    """What `work` gives, or `TimeoutError` once `seconds` are over; it is not begun where there are none."""
    if seconds == math.inf:
        return work()
    if seconds <= 0:
        raise TimeoutError
    return result(submit(work), seconds)


def result(begun: Future[Result], seconds: float) -> Result:
    """What was begun gives, or `TimeoutError` once `seconds` are over."""
    return begun.result(timeout=max(0.0, seconds))
