"""A clock that only the test moves."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Clock:
    """Seconds since creation, which pass only when the test advances them."""

    now: float = field(default_factory=time.time)

    def __call__(self) -> float:
        return self.now

    def milliseconds(self) -> int:
        """Return the time in milliseconds."""
        return int(self.now * 1000)

    def advance(self, seconds: float) -> None:
        """Advance the clock."""
        self.now += seconds
