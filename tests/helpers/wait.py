"""Wait for a condition instead of for a time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

CEILING_SECONDS: Final = 60.0
"""The longest that a test waits for anything. No test passes or fails by a shorter time."""


def until(condition: Callable[[], object]) -> None:
    """Return once the condition holds. Fail after the ceiling.

    Evaluating the condition takes at most a fifth of the time, so that it does not delay the work that it waits for.
    """
    deadline = time.monotonic() + CEILING_SECONDS
    while True:
        began = time.monotonic()
        if condition():
            return
        now = time.monotonic()
        assert now < deadline, f"the condition did not hold within {CEILING_SECONDS:.0f} s"
        time.sleep(min(max(0.01, 4 * (now - began)), 0.25))
