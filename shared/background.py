"""Background threads of a request, which waits for them with a time-out."""

import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

Result = TypeVar("Result")


def submit(work: Callable[[], Result]) -> Future[Result]:
    """Run `work` in a thread, as part of the current call. It is not cancelled when its time is over."""
    # One thread each: in a shared pool, work that waits for other work could deadlock.
    thread = ThreadPoolExecutor(1, thread_name_prefix="background")
    future = thread.submit(copy_context().run, work)
    thread.shutdown(wait=False)
    return future


def run_with_timeout(seconds: float, work: Callable[[], Result]) -> Result:
    """Return the result of `work`. Raise TimeoutError after `seconds`; without time left, do not start it."""
    if seconds == math.inf:
        return work()
    if seconds <= 0:
        raise TimeoutError
    return result(submit(work), seconds)


def result(future: Future[Result], seconds: float) -> Result:
    """Return the result of submitted work. Raise TimeoutError after `seconds`."""
    return future.result(timeout=max(0.0, seconds))
