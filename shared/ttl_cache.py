"""What a process remembers for a moment, so that what comes often does not ask the store each time."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import Final, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_MOST: Final = 5_000


class TtlCache(Generic[K, V]):
    """Values by key, each for so many seconds, and the latest few thousand."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._values: OrderedDict[K, tuple[V, float]] = OrderedDict()
        self._changing = threading.Lock()

    def get(self, key: K) -> V | None:
        """What was put under this key, if that is not too long ago."""
        value, until = self._values.get(key, (None, 0.0))
        return value if until > time.monotonic() else None

    def put(self, key: K, value: V) -> V:
        """Remember a value, in place of another."""
        with self._changing:
            self._values[key] = value, time.monotonic() + self._seconds
            self._values.move_to_end(key)
            while len(self._values) > _MOST:
                self._values.popitem(last=False)
        return value

    def forget(self, key: K) -> None:
        """Remember nothing under this key."""
        with self._changing:
            self._values.pop(key, None)

    def clear(self) -> None:
        """Remember nothing."""
        with self._changing:
            self._values.clear()
