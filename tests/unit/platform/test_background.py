"""Work outside a request's own thread: part of the call, awaited as long as there is time."""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from shared.platform.background import result, run_with_timeout, submit
from shared.platform.telemetry import current_correlation_id
from shared.rpc.observation import observe
from tests.helpers.wait import CEILING_SECONDS


def test_context_is_propagated() -> None:
    with observe("unit/test", "a-correlation-id"):
        assert run_with_timeout(CEILING_SECONDS, current_correlation_id) == "a-correlation-id"
        assert result(submit(current_correlation_id), CEILING_SECONDS) == "a-correlation-id"


def test_wait_ends_at_the_timeout() -> None:
    ending = threading.Event()
    try:
        with pytest.raises(TimeoutError):
            run_with_timeout(0.05, lambda: ending.wait(CEILING_SECONDS))
    finally:
        ending.set()


def test_work_without_remaining_time_is_not_started() -> None:
    begun: list[int] = []
    for seconds in (0.0, -1.0):
        with pytest.raises(TimeoutError):
            run_with_timeout(seconds, lambda: begun.append(1))
    assert begun == []
    run_with_timeout(math.inf, lambda: begun.append(1))
    assert begun == [1]


def test_exception_is_raised_to_the_waiter() -> None:
    with pytest.raises(ZeroDivisionError):
        run_with_timeout(CEILING_SECONDS, lambda: 1 // 0)


def test_nested_background_work_does_not_deadlock() -> None:
    together = threading.Barrier(100)

    def work() -> int:
        together.wait(CEILING_SECONDS)
        return run_with_timeout(CEILING_SECONDS, lambda: 7)

    with ThreadPoolExecutor(100) as callers:
        assert list(callers.map(lambda _: run_with_timeout(CEILING_SECONDS, work), range(100))) == [7] * 100
