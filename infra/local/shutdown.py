"""The end of a serving process: graceful at the first signal, by force at Ctrl-C after it or after the grace period.

Writes are acknowledged once they are stored. Therefore nothing acknowledged is lost, whenever the process ends.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, TextIO

from shared.platform.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

GRACE_SECONDS: Final = 28.0
STOP_SECONDS: Final = 5.0
"""The time for workers to end what they do. Streams deliver again what they do not end."""
_REQUESTS_SHARE: Final = 0.9
"""The share of the grace period in which requests may end. The rest is for what they need, which is closed then."""
_FORCE_SHARE: Final = 0.96
"""The share of the grace period after which the process ends by force: that takes a moment too."""
_OUTPUT_SECONDS: Final = 0.5
_SHOWN_NAMES: Final = 5
_SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
)


class Shutdown:
    """The end of this process, with one deadline for everything.

    Before `end_gracefully`, a signal ends the process at once. After it, the first signal asks for a graceful end.
    """

    def __init__(self, grace_seconds: float, output: TextIO | None = None, *, kills_children: bool = True) -> None:
        self._grace_seconds = grace_seconds
        self._output = output
        self._kills_children = kills_children
        self._end: Callable[[], None] | None = None
        self._unfinished: Callable[[], Iterable[str]] = list
        self._receiver, self._sender = socket.socketpair()
        self._sender.setblocking(False)
        self._nowhere = Path(os.devnull).open("w")  # noqa: SIM115 - open until the process ends

    @property
    def request_seconds(self) -> float:
        """The seconds that requests have to end."""
        return self._grace_seconds * _REQUESTS_SHARE

    def watch_signals(self) -> None:
        """Watch this process's signals, in a thread: the main thread may wait for something that never ends."""
        for number in _SIGNALS:
            # nohup ignores SIGHUP. A shell makes a background command ignore SIGINT, which `kill -INT` sends too.
            if signal.getsignal(number) != signal.SIG_IGN or number == signal.SIGINT:
                signal.signal(number, self._forward)
        if sys.platform != "win32":
            signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)
        threading.Thread(target=self._watch, name="shutdown", daemon=True).start()

    def end_gracefully(self, end: Callable[[], None], unfinished: Callable[[], Iterable[str]]) -> None:
        """Call `end` at the first signal. `unfinished` names what still runs."""
        self._unfinished = unfinished
        self._end = end

    def finish(self) -> NoReturn:
        """End the process after a graceful end. What still runs was given up by its callers."""
        self._print("Ended.")
        self._exit(0)

    def _forward(self, number: int, _frame: object) -> None:
        """Take a signal. Elsewhere than on Windows, the interpreter has already written it to the socket."""
        if sys.platform == "win32":
            self._sender.send(bytes([number]))

    def _watch(self) -> None:
        first = self._receive()
        if self._end is None:
            self._exit(128 + first)
        deadline = time.monotonic() + self._grace_seconds * _FORCE_SHARE
        # Needs no interpreter: a thread may keep it to itself.
        faulthandler.dump_traceback_later(self._grace_seconds, exit=True, file=self._nowhere)
        self._end()
        if names := _summary(self._unfinished()):
            self._print(f"Ending within {self._grace_seconds:g} s. Waiting for {names}. Ctrl-C ends at once.")
        else:
            self._print("Ending.")
        while (seconds := deadline - time.monotonic()) > 0:
            self._receiver.settimeout(seconds)
            with suppress(TimeoutError):
                # Programs that end others repeat SIGTERM. A person who presses Ctrl-C again waits no longer.
                if self._receive() == signal.SIGINT:
                    self._print("Ended at once.")
                    self._exit(128 + signal.SIGINT)
        names = _summary(self._unfinished()) or "background work"
        self._print(f"Ended by force after {self._grace_seconds:g} s: {names} did not end.")
        _within_seconds(lambda: logger.error("ended by force", extra={"unfinished": names}))
        self._exit(128 + first)

    def _receive(self) -> int:
        return self._receiver.recv(1)[0]

    def _print(self, text: str) -> None:
        def write() -> None:
            with suppress(OSError, ValueError):  # its output may be closed, or a file on a full disk
                print(text, file=self._output, flush=True)

        _within_seconds(write)

    def _exit(self, code: int) -> NoReturn:
        """End the process and its child processes without waiting for its threads."""
        # Elsewhere than on Linux, they end when their connections to this process do.
        if self._kills_children and sys.platform == "linux":
            for children in Path("/proc/self/task").glob("*/children"):
                with suppress(OSError):
                    for pid in children.read_text().split():
                        os.kill(int(pid), signal.SIGKILL)
        os._exit(code)


def join_all(threads: Sequence[threading.Thread], seconds: float) -> None:
    """Wait for threads that are stopping, at most `seconds` for all together."""
    deadline = time.monotonic() + seconds
    for each in threads:
        each.join(max(0.0, deadline - time.monotonic()))


def _summary(names: Iterable[str]) -> str:
    counts = Counter(names)
    shown = [name if count == 1 else f"{name} ({count})" for name, count in counts.most_common(_SHOWN_NAMES)]
    rest = len(counts) - len(shown)
    return ", ".join([*shown, f"{rest} more"] if rest else shown)


def _within_seconds(work: Callable[[], object]) -> None:
    """Run `work`, but wait only briefly: its output may be a pipe without a reader."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(_OUTPUT_SECONDS)
