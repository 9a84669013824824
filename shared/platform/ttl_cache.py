"""TTL cache: entries expire after a fixed time, and when the clock goes back."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class TtlCache(Generic[K, V]):
    """A thread-safe cache: each entry expires after `seconds`; beyond `capacity` the oldest are evicted."""

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic, capacity: int = 5_000) -> None:
        self._seconds = seconds
        self._clock = clock
        self._capacity = capacity
        self._entries: OrderedDict[K, tuple[V, float]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        """Return the value of this key unless it has expired."""
        value, expires_at = self._entries.get(key, (None, 0.0))
        now = self._clock()
        return value if now < expires_at <= now + self._seconds else None

    def put(self, key: K, value: V, *, expires_at: float | None = None) -> V:
        """Store a value and return it. It may expire earlier than usual, at `expires_at`."""
        expiry = self._clock() + self._seconds
        with self._lock:
            self._entries[key] = value, expiry if expires_at is None else min(expiry, expires_at)
            self._entries.move_to_end(key)
            while len(self._entries) > self._capacity:
                self._entries.popitem(last=False)
        return value

    def delete(self, key: K) -> None:
        """Delete the value of this key."""
        with self._lock:
            self._entries.pop(key, None)

    def clear(self) -> None:
        """Delete all values."""
        with self._lock:
            self._entries.clear()
