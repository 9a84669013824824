"""Locks by name, which exist while a thread of this process has them or waits for them."""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

Name = TypeVar("Name", bound=Hashable)


class NamedLocks(Generic[Name]):
    """The locks of one kind of thing."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[Name, Lock] = WeakValueDictionary()
        self._locking = Lock()

    def of(self, name: Name) -> Lock:
        """Return the lock of this name. Keep it as long as it counts."""
        with self._locking:
            return self._locks.setdefault(name, Lock())
