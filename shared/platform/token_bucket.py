"""Token buckets. The state of one is a single number: the time at which it is full again, in microseconds."""

import math
import threading
from dataclasses import dataclass
from typing import Final

MICROSECONDS: Final = 1_000_000
"""In a second. Whole numbers add up without rounding, in this process and in DynamoDB."""
_MINUTE: Final = 60 * MICROSECONDS


@dataclass(frozen=True, slots=True)
class BucketSize:
    """The tokens that a bucket holds, and those that flow in a minute."""

    capacity: int
    a_minute: int

    @property
    def interval(self) -> int:
        """Return the microseconds in which a token flows in, rounded up."""
        return -(-_MINUTE // max(self.a_minute, 1))

    def latest(self, now: int, tokens: int = 1) -> int:
        """Return the latest time of being full again at which the bucket still holds `tokens` now."""
        return now + (self.capacity - tokens) * self.interval

    def pause(self, full_at: int, now: int, tokens: int = 1) -> float:
        """Return the seconds until the bucket holds `tokens`, 0 if it does now."""
        return max(0, max(full_at, now) - self.latest(now, tokens)) / MICROSECONDS


class TokenBucket:
    """A token bucket in this process. Times are seconds of any steady clock."""

    __slots__ = ("_full_at", "_lock", "_size")

    def __init__(self, size: BucketSize) -> None:
        self._size = size
        self._full_at = 0
        self._lock = threading.Lock()

    def take(self, now: float) -> bool:
        """Take a token. Return False if there is none."""
        with self._lock:
            if self._size.pause(self._full_at, _microseconds(now)):
                return False
            self._remove(_microseconds(now))
            return True

    def reserve(self, now: float, longest: float = math.inf) -> float:
        """Take a token, even if it has yet to flow in. Return the seconds until then; above `longest`, take none."""
        with self._lock:
            pause = self._size.pause(self._full_at, _microseconds(now))
            if pause <= longest:
                self._remove(_microseconds(now))
            return pause

    def _remove(self, now: int) -> None:
        self._full_at = max(self._full_at, now) + self._size.interval


def _microseconds(seconds: float) -> int:
    return round(seconds * MICROSECONDS)
