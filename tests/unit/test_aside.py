"""Work beside a request's own thread: part of the call, waited for as long as there is time."""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from shared.aside import begin, outcome, within
from shared.telemetry import current_correlation_id, observe
from tests.helpers.wait import CEILING_SECONDS


def test_it_is_part_of_the_call() -> None:
    with observe("unit/test", "a-correlation-id"):
        assert within(CEILING_SECONDS, current_correlation_id) == "a-correlation-id"
        assert outcome(begin(current_correlation_id), CEILING_SECONDS) == "a-correlation-id"


def test_what_takes_too_long_is_not_waited_for() -> None:
    ending = threading.Event()
    try:
        with pytest.raises(TimeoutError):
            within(0.05, lambda: ending.wait(CEILING_SECONDS))
    finally:
        ending.set()


def test_what_has_no_time_is_not_begun() -> None:
    begun: list[int] = []
    for seconds in (0.0, -1.0):
        with pytest.raises(TimeoutError):
            within(seconds, lambda: begun.append(1))
    assert begun == []
    within(math.inf, lambda: begun.append(1))
    assert begun == [1]


def test_what_fails_fails_for_whoever_waits() -> None:
    with pytest.raises(ZeroDivisionError):
        within(CEILING_SECONDS, lambda: 1 // 0)


def test_a_crowd_whose_work_waits_for_other_work_starves_nobody() -> None:
    together = threading.Barrier(100)

    def work() -> int:
        together.wait(CEILING_SECONDS)
        return within(CEILING_SECONDS, lambda: 7)

    with ThreadPoolExecutor(100) as callers:
        assert list(callers.map(lambda _: within(CEILING_SECONDS, work), range(100))) == [7] * 100
