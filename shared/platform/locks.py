"""Locks by name, which exist while a thread of this process has them or waits for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

Name = TypeVar("Name", bound=Hashable)


class FairLock:
    """A lock that threads get in the order in which they came. A thread that releases it cannot overtake the others."""

    def __init__(self) -> None:
        self._mutex = Lock()
        self._turns: deque[Lock] = deque()
        self._is_held = False

    def locked(self) -> bool:
        """Return True while a thread has the lock."""
        return self._is_held

    def acquire(self, timeout: float = -1) -> bool:
        """Wait for the lock, without end or for `timeout` seconds. Return False if it was not free in time."""
        with self._mutex:
            if not self._is_held:
                self._is_held = True
                return True
            turn = Lock()
            turn.acquire()
            self._turns.append(turn)
        if turn.acquire(timeout=timeout):
            return True
        with self._mutex:
            if turn not in self._turns:  # the turn came at the last moment
                return True
            self._turns.remove(turn)
            return False

    def release(self) -> None:
        """Pass the lock on."""
        with self._mutex:
            if self._turns:
                self._turns.popleft().release()
            else:
                self._is_held = False

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class NamedLocks(Generic[Name]):
    """The locks of one kind of thing."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[Name, FairLock] = WeakValueDictionary()
        self._locking = Lock()

    def of(self, name: Name) -> FairLock:
        """Return the lock of this name. Keep it as long as it counts."""
        with self._locking:
            return self._locks.setdefault(name, FairLock())
