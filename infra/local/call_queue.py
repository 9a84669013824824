"""The queue of an HTTP server's calls: bounded, and fair to each caller."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from shared.rpc.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
_Turn = asyncio.Future[object]

_NEW_SECONDS: Final = 0.1
_SHARE: Final = 0.75
"""The share of the threads that one caller can have."""


class CallQueue:
    """Calls that wait for a thread. Callers take turns; the calls of each keep their order.

    `at_once` new calls run at the same time: more threads would only wait for the interpreter. A call that lasts waits
    for something else, and counts no longer; there are at most `threads` altogether. If more than `waiting` calls wait,
    one of the caller with the most is refused. All methods belong to one event loop.
    """

    def __init__(
        self, *, at_once: int = 16, threads: int = 512, waiting: int = 1024, new_seconds: float = _NEW_SECONDS
    ) -> None:
        self._at_once = at_once
        self._threads = threads
        self._limit = waiting
        self._new_seconds = new_seconds
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="call")
        self._lanes: OrderedDict[str, deque[_Turn]] = OrderedDict()
        self._waiting = 0
        self._new: OrderedDict[object, float] = OrderedDict()
        """The calls that are new, oldest first, and the time until which they are."""
        self._running: Counter[str] = Counter()
        self._total = 0
        self._timer: asyncio.TimerHandle | None = None

    def close(self) -> None:
        """Cancel calls that have not begun."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def run(self, caller: str, seconds: float, begin: Callable[[], object], work: Callable[[], T]) -> T:
        """Call `begin` when it is the caller's turn, and run `work` in a thread.

        Raise `Unavailable` if too many calls wait, and TimeoutError if the work lasts longer than `seconds`.
        """
        loop = asyncio.get_running_loop()
        call = self._start(caller) if not self._lanes and self._may_start(caller) else await self._turn(caller)
        begin()
        outcome: asyncio.Future[T] = loop.create_future()
        self._pool.submit(self._work, loop, call, caller, work, outcome)
        timer = loop.call_later(seconds, _expire, outcome)
        try:
            return await outcome
        finally:
            timer.cancel()

    def _may_start(self, caller: str) -> bool:
        now = time.monotonic()
        while self._new and next(iter(self._new.values())) <= now:
            self._new.popitem(last=False)
        has_thread = self._total < self._threads and self._running[caller] < self._threads * _SHARE
        return len(self._new) < self._at_once and has_thread

    def _start(self, caller: str) -> object:
        call = object()
        self._new[call] = time.monotonic() + self._new_seconds
        self._running[caller] += 1
        self._total += 1
        return call

    async def _turn(self, caller: str) -> object:
        """Wait for the caller's turn. Return the call, which has then started."""
        turn: _Turn = asyncio.get_running_loop().create_future()
        self._lanes.setdefault(caller, deque()).append(turn)
        self._waiting += 1
        if self._waiting > self._limit:
            self._refuse_one()
        self._start_waiting()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._end(turn.result(), caller)
            else:
                self._remove(caller, turn)
            raise

    def _refuse_one(self) -> None:
        """Refuse the last call of the caller with the most."""
        caller = max(self._lanes, key=lambda each: len(self._lanes[each]))
        turn = self._lanes[caller][-1]
        self._remove(caller, turn)
        turn.set_exception(_overloaded())

    def _remove(self, caller: str, turn: _Turn) -> None:
        with suppress(KeyError, ValueError):
            self._lanes[caller].remove(turn)
            self._waiting -= 1
            if not self._lanes[caller]:
                del self._lanes[caller]

    def _start_waiting(self) -> None:
        """Start the calls that may. Callers take turns."""
        while (caller := next(filter(self._may_start, self._lanes), None)) is not None:
            lane = self._lanes[caller]
            turn = lane.popleft()
            self._waiting -= 1
            self._lanes.move_to_end(caller)
            if not lane:
                del self._lanes[caller]
            if not turn.done():
                turn.set_result(self._start(caller))
        if self._lanes and len(self._new) >= self._at_once and self._timer is None:
            delay = next(iter(self._new.values())) - time.monotonic()
            self._timer = asyncio.get_running_loop().call_later(max(0.0, delay), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._start_waiting()

    def _work(
        self,
        loop: asyncio.AbstractEventLoop,
        call: object,
        caller: str,
        work: Callable[[], T],
        outcome: asyncio.Future[T],
    ) -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = work()
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(self._finish, call, caller, outcome, result, error)

    def _finish(
        self, call: object, caller: str, outcome: asyncio.Future[Any], result: Any, error: BaseException | None
    ) -> None:
        if not outcome.done():
            if error:
                outcome.set_exception(error)
            else:
                outcome.set_result(result)
        self._end(call, caller)

    def _end(self, call: object, caller: str) -> None:
        self._new.pop(call, None)
        self._running[caller] -= 1
        if not self._running[caller]:
            del self._running[caller]
        self._total -= 1
        self._start_waiting()


def _expire(outcome: asyncio.Future[Any]) -> None:
    if not outcome.done():
        outcome.set_exception(TimeoutError())


def _overloaded() -> Unavailable:
    return Unavailable(
        "The server is busy; nothing was done.",
        code="OVERLOADED",
        guidance="Wait for the seconds of Retry-After, then call again, with fewer calls at a time.",
    )
