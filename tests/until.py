"""Waiting for what comes to hold by itself."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_SECONDS: Final = 10.0


def until(holds: Callable[[], object], seconds: float = _SECONDS) -> None:
    """Return once it holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it never came to hold"
        time.sleep(0.01)
