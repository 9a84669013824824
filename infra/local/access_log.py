"""The access log on the terminal. It never delays a request."""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
import time
from typing import Final

_MAX_WAITING: Final = 1000


class AccessLog(threading.Thread):
    """A thread that writes lines as fast as the terminal takes them and drops lines when its queue is full."""

    def __init__(self) -> None:
        super().__init__(name="terminal", daemon=True)
        self._lines: queue.Queue[str] = queue.Queue(_MAX_WAITING)

    def access(self, method: str, path: str, status: int, seconds: float) -> None:
        """Log one request."""
        escaped = path.encode("unicode_escape").decode("ascii")
        with contextlib.suppress(queue.Full):
            self._lines.put_nowait(f"{time.strftime('%H:%M:%S')} {method} {escaped} {status} {seconds * 1000:.0f} ms\n")

    def run(self) -> None:
        """Write lines until the output is closed."""
        while True:
            line = self._lines.get()
            try:
                sys.stdout.write(line)
                sys.stdout.flush()
            except (OSError, ValueError):
                return
