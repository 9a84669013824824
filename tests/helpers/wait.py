"""Wait for a condition instead of for a time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

CEILING_SECONDS: Final = 60.0
"""The longest that a test waits for anything. No test passes or fails by a shorter time."""


def until(condition: Callable[[], object]) -> None:
    """Return once the condition holds. Fail after the ceiling."""
    deadline = time.monotonic() + CEILING_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"the condition did not hold within {CEILING_SECONDS:.0f} s"
        time.sleep(0.01)
