"""Token buckets in this process: a burst, and then as much as flows in."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING

import pytest

from shared.platform.token_bucket import BucketSize, TokenBucket

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_burst_and_refill() -> None:
    bucket = TokenBucket(BucketSize(100, 6_000))
    assert sum(bucket.take(0.0) for _ in range(300)) == 100
    assert sum(bucket.take(0.5) for _ in range(300)) == 50
    assert sum(bucket.take(60.0) for _ in range(300)) == 100


def test_uneven_rates_are_never_exceeded() -> None:
    bucket = TokenBucket(BucketSize(3, 7))
    assert sum(bucket.take(second / 10) for second in range(36_000)) == 3 + 7 * 60 - 1


def test_slowest_bucket_gives_a_token_a_minute() -> None:
    for a_minute in (1, 0):
        bucket = TokenBucket(BucketSize(1, a_minute))
        assert [bucket.take(second) for second in (0.0, 59.9, 60.0, 119.9, 120.0)] == [True, False, True, False, True]


def test_reservations_wait_for_their_token() -> None:
    bucket = TokenBucket(BucketSize(2, 120))
    assert [bucket.reserve(10.0) for _ in range(4)] == [0, 0, 0.5, 1.0]
    assert bucket.reserve(11.0) == 0.5
    assert not bucket.take(11.0)


def test_reservation_that_would_wait_too_long_takes_nothing() -> None:
    bucket = TokenBucket(BucketSize(2, 120))
    assert [bucket.reserve(10.0, longest=0.5) for _ in range(5)] == [0, 0, 0.5, 1.0, 1.0]
    assert bucket.reserve(10.5, longest=0.5) == 0.5


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Switch between threads as often as possible."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("eager_threads")
def test_threads_never_take_more_than_the_bucket_holds() -> None:
    bucket = TokenBucket(BucketSize(5000, 1))
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda _: sum(bucket.take(0.0) for _ in range(1000)), range(8)))
    assert sum(taken) == 5000


@pytest.mark.usefixtures("eager_threads")
def test_threads_never_reserve_the_same_token() -> None:
    bucket = TokenBucket(BucketSize(1, 60))
    with ThreadPoolExecutor(8) as pool:
        pauses = list(pool.map(lambda _: [bucket.reserve(0.0) for _ in range(500)], range(8)))
    assert sorted(chain.from_iterable(pauses)) == list(range(4000))
