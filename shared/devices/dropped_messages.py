"""Dropped device messages: counted by kind, logged at most once a second, never with their content."""

import threading
import time
from collections import Counter
from typing import Final, Literal

from shared.platform.telemetry import count, logger

Kind = Literal["oversize", "malformed", "unknown", "unasked", "late", "repeated"]
_LOG_INTERVAL_SECONDS: Final = 1.0


class DroppedMessages:
    """Counters of the messages dropped since this process started."""

    def __init__(self) -> None:
        self.counts: Counter[Kind] = Counter()
        self.unreported: Counter[Kind] = Counter()
        self._unlogged: Counter[tuple[Kind, str]] = Counter()
        self._logged_at = 0.0
        self._lock = threading.Lock()

    def record(self, kind: Kind, device_id: str) -> None:
        """Record one message. Logging is rate-limited, so a flooding device does not fill the log."""
        with self._lock:
            self.counts[kind] += 1
            self.unreported[kind] += 1
            self._unlogged[kind, device_id] += 1
            if time.monotonic() - self._logged_at < _LOG_INTERVAL_SECONDS:
                return
            self._logged_at = time.monotonic()
            unlogged, self._unlogged = self._unlogged, Counter()
        for (dropped_kind, sender), number in unlogged.items():
            logger.warning("message dropped", extra={"kind": dropped_kind, "device_id": sender, "number": number})

    def count(self) -> None:
        """Add the messages dropped since the last call to the current invocation's metrics."""
        with self._lock:
            dropped, self.unreported = self.unreported, Counter()
        count(**{f"dropped_{kind}": number for kind, number in dropped.items()})
