"""The queue of calls is bounded, and no caller's calls keep those of others waiting."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.call_queue import CallQueue
from shared.rpc.errors import Unavailable
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

NEVER = 3600.0


class Calls:
    """Calls of a queue that run until the test ends them."""

    def __init__(self, **limits: Any) -> None:
        self.queue = CallQueue(**{"new_seconds": NEVER} | limits)
        self.begun: list[str] = []
        self.began: dict[str, asyncio.Event] = {}
        self._ends: dict[str, threading.Event] = {}
        self._tasks: dict[str, asyncio.Task[str]] = {}

    async def add(self, *names: str, seconds: float = NEVER) -> None:
        """Begin calls, the caller of each the first part of its name."""
        for name in names:
            self._ends[name] = threading.Event()
            self.began[name] = asyncio.Event()
            run = self.queue.run(name[0], seconds, partial(self._begin, name), self._work(name))
            self._tasks[name] = asyncio.create_task(run)
            await asyncio.sleep(0)

    async def end(self, name: str) -> str:
        """End a call, and return its result."""
        self._ends[name].set()
        return await asyncio.wait_for(self._tasks[name], CEILING_SECONDS)

    def cancel(self, name: str) -> None:
        """Cancel a call."""
        self._tasks[name].cancel()

    async def error(self, name: str) -> BaseException | None:
        """Return the error of a call."""
        await asyncio.wait([self._tasks[name]], timeout=CEILING_SECONDS)
        return self._tasks[name].exception()

    def close(self) -> None:
        """End everything."""
        for each in self._ends.values():
            each.set()
        self.queue.close()

    def _begin(self, name: str) -> None:
        self.begun.append(name)
        self.began[name].set()

    def _work(self, name: str) -> Callable[[], str]:
        def work() -> str:
            assert self._ends[name].wait(CEILING_SECONDS)
            return f"result of {name}"

        return work


@contextmanager
def calls(**limits: Any) -> Iterator[Calls]:
    """Yield calls, and end them."""
    made = Calls(**limits)
    try:
        yield made
    finally:
        made.close()


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run a test on an event loop."""

    async def bounded() -> None:
        await asyncio.wait_for(test(), CEILING_SECONDS)

    asyncio.run(bounded())


def test_result_or_error_of_the_work_reaches_the_caller() -> None:
    def fail() -> None:
        raise KeyError("x")

    async def test() -> None:
        with calls() as made:
            await made.add("a1")
            assert await made.end("a1") == "result of a1"
            with pytest.raises(KeyError):
                await made.queue.run("a", NEVER, lambda: None, fail)

    run(test)


def test_callers_take_turns() -> None:
    """A caller with one call does not wait for the many of another."""

    async def test() -> None:
        with calls(at_once=1) as made:
            await made.add("a1", "a2", "a3", "b1", "c1")
            assert made.begun == ["a1"]
            for name in ("a1", "a2", "b1", "c1", "a3"):
                await made.end(name)
            assert made.begun == ["a1", "a2", "b1", "c1", "a3"]

    run(test)


def test_call_that_lasts_makes_room_for_another() -> None:
    async def test() -> None:
        with calls(at_once=1, new_seconds=0.01) as made:
            await made.add("a1", "b1")
            await made.began["b1"].wait()
            assert await made.end("b1") == "result of b1"

    run(test)


def test_caller_with_most_waiting_calls_is_refused() -> None:
    """The refusal comes at once, names the reason, and tells that nothing was done."""

    async def test() -> None:
        with calls(at_once=1, waiting=3) as made:
            await made.add("a1", "a2", "a3", "b1", "c1")
            error = await made.error("a3")
            assert isinstance(error, Unavailable)
            assert error.code == "OVERLOADED"
            assert "nothing was done" in error.message
            for name in ("a1", "a2", "b1", "c1"):
                await made.end(name)
            assert "a3" not in made.begun

    run(test)


def test_caller_leaves_threads_to_others() -> None:
    """Calls that last take three quarters of the threads at most."""

    async def test() -> None:
        with calls(threads=4, new_seconds=0) as made:
            await made.add("a1", "a2", "a3", "a4")
            assert made.begun == ["a1", "a2", "a3"]
            await made.add("b1")
            assert made.begun == ["a1", "a2", "a3", "b1"]
            await made.end("a1")
            await made.end("a4")

    run(test)


def test_call_that_takes_too_long_keeps_its_place_until_it_ends() -> None:
    async def test() -> None:
        with calls(at_once=1) as made:
            await made.add("a1", seconds=0)
            assert isinstance(await made.error("a1"), TimeoutError)
            await made.add("b1")
            assert made.begun == ["a1"]
            with pytest.raises(TimeoutError):
                await made.end("a1")
            await made.end("b1")

    run(test)


def test_cancelled_call_is_never_begun() -> None:
    async def test() -> None:
        with calls(at_once=1, waiting=1) as made:
            await made.add("a1", "b1")
            made.cancel("b1")
            await asyncio.sleep(0)
            await made.add("c1")
            await made.end("a1")
            await made.end("c1")
            assert made.begun == ["a1", "c1"]

    run(test)
