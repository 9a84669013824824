"""Slots of processor time for embedding in one process: urgent texts go before those of bulk work.

A slot is held for one text, the smallest part of the model's work. A passage takes less than 0.1 s of processor time.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal, get_args

from shared.platform.lanes import Lane

if TYPE_CHECKING:
    from collections.abc import Iterator

_Kind = Lane | Literal["question"]
_LANES: Final[tuple[Lane, ...]] = get_args(Lane)
BULK_PAUSE_SECONDS: Final = 0.25
"""Bulk work that has not run for this long gets one slot, so that constant urgent work never stops it for good."""


class EmbeddingSlots:
    """The slots of a machine's cores. Texts of one lane get them in the order of their arrival.

    Urgent texts share the cores, however much bulk work is running. While one is running or waiting, bulk work begins
    no text on its core, nor on one core more, which is for the rest of the callers' requests.
    """

    def __init__(self, cores: int, bulk_pause: float = BULK_PAUSE_SECONDS) -> None:
        self._cores = cores
        self._bulk_pause = bulk_pause
        self._changing = threading.Lock()
        self._waiting: dict[Lane, deque[threading.Event]] = {"urgent": deque(), "bulk": deque()}
        self._running: dict[_Kind, int] = {"urgent": 0, "bulk": 0, "question": 0}
        self._bulk_paused_at = 0.0

    @contextmanager
    def slot(self, lane: Lane) -> Iterator[None]:
        """Hold a slot for one text."""
        turn = threading.Event()
        with self._changing:
            if lane == "bulk" and not self._running["bulk"] and not self._waiting["bulk"]:
                self._bulk_paused_at = time.monotonic()
            self._waiting[lane].append(turn)
            self._begin_next()
        while not turn.wait(self._bulk_pause if lane == "bulk" else None):
            with self._changing:
                self._begin_next()
        with self._ending(lane):
            yield

    @contextmanager
    def question(self) -> Iterator[None]:
        """Run a question, which is short: it waits for no text and takes no slot, but bulk work gives way to it."""
        with self._changing:
            self._running["question"] += 1
        with self._ending("question"):
            yield

    @contextmanager
    def _ending(self, kind: _Kind) -> Iterator[None]:
        try:
            yield
        finally:
            with self._changing:
                self._running[kind] -= 1
                if kind == "bulk":
                    self._bulk_paused_at = time.monotonic()
                self._begin_next()

    def _begin_next(self) -> None:
        """Give slots to the texts whose turn it is."""
        for lane in _LANES:
            while self._waiting[lane] and self._is_free(lane):
                self._running[lane] += 1
                self._waiting[lane].popleft().set()

    def _is_free(self, lane: Lane) -> bool:
        if lane == "urgent":
            return self._running["urgent"] < self._cores
        urgent = self._running["urgent"] + self._running["question"] + len(self._waiting["urgent"])
        if self._running["bulk"] < (self._cores - urgent - 1 if urgent else self._cores):
            return True
        return not self._running["bulk"] and time.monotonic() - self._bulk_paused_at >= self._bulk_pause
