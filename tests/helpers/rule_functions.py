"""Functions that rules invoke in tests."""

from __future__ import annotations

import queue
from typing import Any, Final

taken: Final[queue.Queue[dict[str, Any]]] = queue.Queue()
crashes: Final[list[dict[str, Any]]] = []


def record(event: dict[str, Any], _context: Any) -> None:
    """Record an event."""
    taken.put(event)


def crash_once(event: dict[str, Any], _context: Any) -> None:
    """Record an event at the second attempt."""
    crashes.append(event)
    if len(crashes) == 1:
        raise RuntimeError("the first time")
    taken.put(event)
