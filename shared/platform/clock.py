"""The time formats, and the rule for stored times: a wrong clock heals.

APIs get ISO 8601 in UTC with milliseconds, devices milliseconds since 1970.

A time that Kho sets by itself, such as the end of a lease, is believed only as far as it could have been set now. One
that is further ahead was set by a clock that was ahead, or is read by one that is behind. Its limit counts as over: a
lock opens, and a credential is refused. The item stays, because the clock that reads it may be the wrong one.
"""

import time
from datetime import UTC, datetime
from typing import Final

SKEW_SECONDS: Final = 60
"""The clocks of machines that share a store differ by less."""


def now() -> str:
    """Return the current time."""
    return iso_time(time.time())


def now_ms() -> int:
    """Return the current time in milliseconds since 1970."""
    return int(time.time() * 1000)


def iso_time(seconds: float) -> str:
    """Format a time in seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def lasts(until: float, now: float, longest: float) -> bool:
    """Return True if `until` is to come, and could have been set now by a limit of `longest`. All are seconds."""
    return now < until <= latest(now, longest)


def latest(now: float, longest: float) -> float:
    """Return the latest end of a limit of `longest` seconds that is believed at `now`."""
    return now + longest + SKEW_SECONDS
