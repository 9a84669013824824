"""Rate limiting of clients."""

from __future__ import annotations


class TokenBucket:
    """A token bucket that holds one second's worth of tokens; a rate of None disables the limit."""

    __slots__ = ("_per_second", "_tokens", "_updated_at")

    def __init__(self, per_second: int | None, now: float) -> None:
        self._per_second = per_second
        self._tokens = float(per_second or 0)
        self._updated_at = now

    def take(self, now: float) -> bool:
        """Take a token. Return False if none is left."""
        if self._per_second is None:
            return True
        self._tokens = min(self._per_second, self._tokens + (now - self._updated_at) * self._per_second)
        self._updated_at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
