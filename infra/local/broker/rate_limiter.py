"""How often a client may do something."""

from __future__ import annotations


class TokenBucket:
    """So many a second, with up to a second's worth at once; None: as many as it likes."""

    __slots__ = ("_left", "_per_second", "_since")

    def __init__(self, per_second: int | None, now: float) -> None:
        self._per_second = per_second
        self._left = float(per_second or 0)
        self._since = now

    def take(self, now: float) -> bool:
        """Whether it may once more."""
        if self._per_second is None:
            return True
        self._left = min(self._per_second, self._left + (now - self._since) * self._per_second)
        self._since = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
