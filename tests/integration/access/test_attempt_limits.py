"""Limits of failed attempts, at the real store; the tests move the clock."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from shared.access.attempt_limits import AttemptLimit
from shared.aws.dynamodb import Table
from shared.platform.config import config
from shared.rpc.errors import Conflict, NotFound, TooManyRequests
from tests.helpers.clock import Clock
from tests.helpers.interference import another_caller
from tests.helpers.wait import CEILING_SECONDS


def limit(clock: Clock) -> AttemptLimit:
    return AttemptLimit(Table(config().limits_table), "wrong codes", 10, 60, clock)


def failures(attempts: AttemptLimit, tenant: str, number: int) -> int:
    """Return how many of the attempts were let fail."""
    passed = 0
    for _ in range(number):
        try:
            with attempts.attempt(tenant):
                raise NotFound
        except NotFound:
            passed += 1
        except TooManyRequests:
            pass
    return passed


def test_ten_failures_in_any_minute_and_sixty_in_any_hour(tenant: str) -> None:
    clock = Clock()
    attempts = limit(clock)
    assert failures(attempts, tenant, 11) == 10
    assert failures(attempts, f"{tenant}-other", 1) == 1
    clock.advance(59)
    assert failures(attempts, tenant, 1) == 0
    for _ in range(5):
        clock.advance(61)
        assert failures(attempts, tenant, 11) == 10
    clock.advance(61)
    with pytest.raises(TooManyRequests, match="60 in one hour") as error, attempts.attempt(tenant):
        pass
    clock.advance(error.value.details["retry_after_seconds"])
    assert failures(attempts, tenant, 60) == 10


def test_attempts_that_succeed_or_fail_otherwise_do_not_count(tenant: str) -> None:
    attempts = limit(Clock())
    for _ in range(20):
        with attempts.attempt(tenant):
            pass
        with pytest.raises(Conflict), attempts.attempt(tenant):
            raise Conflict
    assert failures(attempts, tenant, 20) == 10


@pytest.mark.parametrize(("before", "at"), [(0, 1), (3, 1), (3, 2)])
def test_attempt_that_another_caller_just_made_counts(tenant: str, before: int, at: int) -> None:
    """Neither replaces the other, whether one has failed before or not. The first request reads what failed before."""
    attempts = limit(Clock())
    assert failures(attempts, tenant, before) == before
    with another_caller(lambda: failures(attempts, tenant, 1), before="UpdateItem", at=at):
        assert failures(attempts, tenant, 1) == 1
    assert failures(attempts, tenant, 20) == 10 - before - 2


def test_failures_just_before_a_success_count(tenant: str) -> None:
    attempts = limit(Clock())
    with another_caller(lambda: failures(attempts, tenant, 4), before="UpdateItem", at=2), attempts.attempt(tenant):
        pass
    assert failures(attempts, tenant, 20) == 6


def test_attempts_at_the_same_time_do_not_exceed_the_limit() -> None:
    tenant, barrier = f"tenant-{uuid4().hex}", threading.Barrier(16, timeout=CEILING_SECONDS)
    attempts = limit(Clock())

    def attempt(_number: int) -> int:
        barrier.wait()
        return failures(attempts, tenant, 1)

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(attempt, range(16))) <= 10
    assert failures(attempts, tenant, 10) <= 10


@pytest.mark.parametrize("days", [2, -2])
def test_failures_of_a_wrong_clock_lock_nobody_out(tenant: str, days: int) -> None:
    """They count while the clock is wrong, and no longer once it is right."""
    wrong, right = Clock(), Clock()
    wrong.advance(days * 86_400)
    assert failures(limit(wrong), tenant, 11) == 10
    assert failures(limit(right), tenant, 11) == 10
    assert failures(limit(wrong), tenant, 11) == 10
