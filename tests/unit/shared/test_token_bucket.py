"""Token buckets in this process: a burst, and then as much as flows in."""

from __future__ import annotations

from shared.token_bucket import BucketSize, TokenBucket


def test_burst_and_refill() -> None:
    bucket = TokenBucket(BucketSize(100, 6_000))
    assert sum(bucket.take(0.0) for _ in range(300)) == 100
    assert sum(bucket.take(0.5) for _ in range(300)) == 50
    assert sum(bucket.take(60.0) for _ in range(300)) == 100


def test_uneven_rates_are_never_exceeded() -> None:
    bucket = TokenBucket(BucketSize(3, 7))
    assert sum(bucket.take(second / 10) for second in range(36_000)) == 3 + 7 * 60 - 1


def test_reservations_wait_for_their_token() -> None:
    bucket = TokenBucket(BucketSize(2, 120))
    assert [bucket.reserve(10.0) for _ in range(4)] == [0, 0, 0.5, 1.0]
    assert bucket.reserve(11.0) == 0.5
    assert not bucket.take(11.0)
