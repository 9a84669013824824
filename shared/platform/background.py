"""Background threads of a request, which waits for them with a time-out."""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def submit(work: Callable[[], Result]) -> Future[Result]:
    """Run `work` in a thread, as part of the current call. It is not cancelled when its time is over."""
    # One thread each: in a shared pool, work that waits for other work could deadlock.
    thread = ThreadPoolExecutor(1, thread_name_prefix="background")
    future = thread.submit(copy_context().run, work)
    thread.shutdown(wait=False)
    return future


def map_concurrently(work: Callable[[Item], Result], items: Iterable[Item], limit: int) -> Iterator[Result]:
    """Yield the results of `work` in the order of `items`. At most `limit` are in progress, or done and not taken."""
    with ThreadPoolExecutor(limit, thread_name_prefix="background") as threads:
        running: deque[Future[Result]] = deque()
        try:
            for item in items:
                running.append(threads.submit(copy_context().run, work, item))
                if len(running) == limit:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()


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
