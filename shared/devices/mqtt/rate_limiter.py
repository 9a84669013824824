"""Client-side rate limiting."""

from __future__ import annotations

import threading
import time


class RateLimiter:
    """A limiter of operations per second, with bursts of up to one second's worth."""

    def __init__(self, per_second: int) -> None:
        self._interval = 1 / per_second
        self._burst = 1.0
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Block until the next operation is allowed."""
        with self._lock:
            now = time.monotonic()
            self._next = max(self._next, now - self._burst) + self._interval
            pause = self._next - now
        if pause > 0:
            time.sleep(pause)
