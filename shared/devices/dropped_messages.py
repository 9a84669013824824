"""Messages that nobody can use: counted by kind, told of once a second at most, never with what they hold."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Final, Literal

from shared.telemetry import count, logger

Kind = Literal["oversize", "malformed", "unknown", "unasked", "late", "repeated"]
_TELL_SECONDS: Final = 1.0


class DroppedMessages:
    """What was dropped since this process began."""

    def __init__(self) -> None:
        self.counts: Counter[Kind] = Counter()
        self._uncounted: Counter[Kind] = Counter()
        self._untold: Counter[tuple[Kind, str]] = Counter()
        self._told_at = 0.0
        self._changing = threading.Lock()

    def note(self, kind: Kind, device_id: str) -> None:
        """Note one; a device that sends many of them does not fill the log."""
        with self._changing:
            self.counts[kind] += 1
            self._uncounted[kind] += 1
            self._untold[kind, device_id] += 1
            if time.monotonic() - self._told_at < _TELL_SECONDS:
                return
            self._told_at = time.monotonic()
            untold, self._untold = self._untold, Counter()
        for (each, sender), number in untold.items():
            logger.warning("message dropped", extra={"kind": each, "device_id": sender, "number": number})

    def count(self) -> None:
        """Tell with the call under way what was dropped since the last."""
        if not self._uncounted:
            return
        with self._changing:
            dropped, self._uncounted = self._uncounted, Counter()
        count(**{f"dropped_{kind}": number for kind, number in dropped.items()})
