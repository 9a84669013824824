"""The time format of all APIs: ISO 8601 in UTC with milliseconds."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now() -> str:
    """Return the current time."""
    return iso_time(time.time())


def iso_time(seconds: float) -> str:
    """Format a time in seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
