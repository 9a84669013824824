"""The time formats: ISO 8601 in UTC with milliseconds for APIs, milliseconds since 1970 for devices."""

import time
from datetime import UTC, datetime


def now() -> str:
    """Return the current time."""
    return iso_time(time.time())


def now_ms() -> int:
    """Return the current time in milliseconds since 1970."""
    return int(time.time() * 1000)


def iso_time(seconds: float) -> str:
    """Format a time in seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
