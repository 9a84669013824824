"""One line a request on the terminal, which must never hold a request back."""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
import time
from typing import Final

_MAX_WAITING: Final = 1000


class AccessLog(threading.Thread):
    """Writes lines as the terminal takes them; where nobody reads, it drops them."""

    def __init__(self) -> None:
        super().__init__(name="terminal", daemon=True)
        self._lines: queue.Queue[str] = queue.Queue(_MAX_WAITING)

    def access(self, method: str, path: str, status: int, seconds: float) -> None:
        """Tell of one request."""
        shown = path.encode("unicode_escape").decode("ascii")
        with contextlib.suppress(queue.Full):
            self._lines.put_nowait(f"{time.strftime('%H:%M:%S')} {method} {shown} {status} {seconds * 1000:.0f} ms\n")

    def run(self) -> None:
        """Write what comes, until nobody can read it any more."""
        while True:
            line = self._lines.get()
            try:
                sys.stdout.write(line)
                sys.stdout.flush()
            except (OSError, ValueError):
                return
