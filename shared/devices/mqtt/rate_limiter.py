"""How often something may be done."""

from __future__ import annotations

import threading
import time


class RateLimiter:
    """So many a second; who comes too early waits for its turn."""

    def __init__(self, per_second: int) -> None:
        self._gap = 1 / per_second
        self._burst = 1.0
        self._next = 0.0
        self._changing = threading.Lock()

    def wait(self) -> None:
        """Return when it may be done once more."""
        with self._changing:
            now = time.monotonic()
            # What was not used for a second is had at once.
            self._next = max(self._next, now - self._burst) + self._gap
            pause = self._next - now
        if pause > 0:
            time.sleep(pause)
