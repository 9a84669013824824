"""Attempts at a record of a stream, counted in the limits table.

An attempt that failed is counted afterwards: a record that succeeds costs no write. A function that crashes or runs out
of time or memory cannot count. So an attempt at a record that is late and alone in its delivery is counted before it
begins, and withdrawn when it ends well, or when a service did not answer.
"""

import hashlib
import threading
import time
from contextlib import suppress
from typing import Any, Final

from shared.aws.dynamodb import Item, Table, Write
from shared.platform.config import config
from shared.rpc.errors import KhoError, Unavailable

MAX_ATTEMPTS: Final = 3
_RETENTION_SECONDS: Final = 2 * 24 * 3600
"""A stream keeps its records for a day."""

_ending: Final = threading.Event()
_running: Final[set[str]] = set()
_lock: Final = threading.Lock()


class DeliveryAttempts:
    """The attempts at one record, which `name` identifies."""

    def __init__(self, name: str) -> None:
        self._partition = f"delivery#{hashlib.sha256(name.encode()).hexdigest()}"
        self._number = 0
        self.are_over = False
        """True if the record was given up before."""

    def begin(self) -> int:
        """Count an attempt that begins, and return the number of attempts."""
        self._read(_add(self._partition, 1))
        with _lock:
            _running.add(self._partition)
        return self._number

    def fail(self) -> int:
        """Count an attempt that failed, unless it was counted when it began. Return the number of attempts."""
        if _ending.is_set():
            raise Unavailable("The server is ending.")
        if not self._forget():
            self._read(_add(self._partition, 1))
        return self._number

    def withdraw(self) -> None:
        """Withdraw an attempt that was counted when it began."""
        if self._forget():
            with suppress(KhoError):  # one attempt too many does no harm
                _add(self._partition, -1)

    def finish(self) -> None:
        """Record that the record was given up, so that it is not given up again when it is delivered again."""
        self._forget()
        with suppress(KhoError):
            _update(self._partition, "SET is_over = :over, expires_at = :expiry", {":over": True})

    def _forget(self) -> bool:
        with _lock:
            is_running = self._partition in _running
            _running.discard(self._partition)
        return is_running

    def _read(self, item: Item) -> None:
        self._number, self.are_over = int(item["attempts"]), "is_over" in item


def end_attempts() -> None:
    """Withdraw the attempts that are running, and count none any more: this process ends, which is not their fault."""
    _ending.set()
    with _lock:
        partitions = set(_running)
        _running.clear()
    for each in partitions:
        with suppress(KhoError):
            _add(each, -1)


def _add(partition: str, number: int) -> Item:
    return _update(partition, "SET expires_at = :expiry ADD attempts :number", {":number": number})


def _update(partition: str, expression: str, values: dict[str, Any]) -> Item:
    expiry = int(time.time()) + _RETENTION_SECONDS
    key = {"pk": partition, "sk": "attempts"}
    return Table(config().limits_table).write(Write("Update", key, expression, "", values | {":expiry": expiry}))
