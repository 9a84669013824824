"""The order in which texts of both lanes get processor time."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, get_args

import pytest

from shared.platform.lanes import Lane
from shared.search.embedding.slots import EmbeddingSlots
from tests.helpers.limits import LONG_SECONDS
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator


class Texts:
    """Texts that hold their slots until the test ends them, each in a thread."""

    def __init__(self, cores: int, bulk_pause: float = LONG_SECONDS) -> None:
        self.slots = EmbeddingSlots(cores, bulk_pause)
        self.begun: list[str] = []
        self._ends: dict[str, threading.Event] = {}
        self._threads: dict[str, threading.Thread] = {}

    def add(self, name: str, lane: Lane) -> None:
        """Ask for a slot, and return when the text runs or waits."""
        before = self._known()
        self._ends[name] = threading.Event()
        self._threads[name] = threading.Thread(target=self._run, args=(name, lane), daemon=True)
        self._threads[name].start()
        until(lambda: self._known() > before)

    def end(self, name: str) -> None:
        """End a running text."""
        self._ends[name].set()
        self._threads[name].join(CEILING_SECONDS)
        assert not self._threads[name].is_alive()

    def waiting(self, lane: Lane) -> int:
        """Return how many texts of the lane wait for a slot."""
        return len(self.slots._waiting[lane])

    def end_all(self) -> None:
        """End every text."""
        for each in self._ends.values():
            each.set()
        for thread in self._threads.values():
            thread.join(CEILING_SECONDS)

    def _known(self) -> int:
        return len(self.begun) + sum(self.waiting(lane) for lane in get_args(Lane))

    def _run(self, name: str, lane: Lane) -> None:
        with self.slots.slot(lane):
            self.begun.append(name)
            self._ends[name].wait(LONG_SECONDS)  # longer than the test waits for others


@pytest.fixture
def cleanup() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def texts(cleanup: ExitStack, cores: int, bulk_pause: float = LONG_SECONDS) -> Texts:
    made = Texts(cores, bulk_pause)
    cleanup.callback(made.end_all)
    return made


def test_an_urgent_text_runs_at_once_however_much_bulk_work_runs_and_waits(cleanup: ExitStack) -> None:
    work = texts(cleanup, cores=2)
    for name in ("bulk 1", "bulk 2", "bulk 3", "bulk 4"):
        work.add(name, "bulk")
    assert work.begun == ["bulk 1", "bulk 2"]
    work.add("urgent", "urgent")
    assert work.begun == ["bulk 1", "bulk 2", "urgent"]


def test_bulk_work_begins_no_text_while_an_urgent_one_needs_the_cores(cleanup: ExitStack) -> None:
    work = texts(cleanup, cores=2)
    for name in ("bulk 1", "bulk 2", "bulk 3", "bulk 4"):
        work.add(name, "bulk")
    work.add("urgent", "urgent")
    work.end("bulk 1")
    work.end("bulk 2")
    assert work.waiting("bulk") == 2
    work.end("urgent")
    until(lambda: set(work.begun[3:]) == {"bulk 3", "bulk 4"})


def test_a_question_waits_for_no_text_and_holds_bulk_work_back(cleanup: ExitStack) -> None:
    work = texts(cleanup, cores=1)
    work.add("urgent", "urgent")
    with work.slots.question():
        work.add("bulk", "bulk")
        work.end("urgent")
        assert work.waiting("bulk") == 1
    until(lambda: work.begun == ["urgent", "bulk"])


def test_questions_never_hold_an_urgent_text_back(cleanup: ExitStack) -> None:
    """Not even as many as never end: a submission is embedded among any number of queries."""
    work = texts(cleanup, cores=1)
    with work.slots.question(), work.slots.question():
        work.add("urgent", "urgent")
        assert work.begun == ["urgent"]


def test_urgent_texts_share_the_cores_in_order(cleanup: ExitStack) -> None:
    work = texts(cleanup, cores=2)
    for name in ("a", "b", "c", "d"):
        work.add(name, "urgent")
    assert work.begun == ["a", "b"]
    work.end("b")
    until(lambda: work.begun == ["a", "b", "c"])
    work.end("a")
    until(lambda: work.begun == ["a", "b", "c", "d"])


@pytest.mark.parametrize(("urgent", "bulk"), [(0, 8), (1, 6), (3, 4), (7, 0)])
def test_bulk_work_leaves_the_core_of_each_urgent_text_and_one_more(cleanup: ExitStack, urgent: int, bulk: int) -> None:
    work = texts(cleanup, cores=8)
    for number in range(urgent):
        work.add(f"urgent {number}", "urgent")
    for number in range(10):
        work.add(f"bulk {number}", "bulk")
    assert sum(name.startswith("bulk") for name in work.begun) == bulk


def test_constant_urgent_work_leaves_bulk_work_one_slot_after_a_pause(cleanup: ExitStack) -> None:
    """Bulk work is never starved: one text at a time runs during urgent ones, a pause after the one before."""
    work = texts(cleanup, cores=1, bulk_pause=0.0)
    work.add("urgent", "urgent")
    work.add("bulk 1", "bulk")
    work.add("bulk 2", "bulk")
    assert work.begun == ["urgent", "bulk 1"]
    work.end("bulk 1")
    until(lambda: work.begun == ["urgent", "bulk 1", "bulk 2"])


def test_the_pause_of_bulk_work_ends_by_itself(cleanup: ExitStack) -> None:
    """No other text has to begin or end for it."""
    work = texts(cleanup, cores=1, bulk_pause=0.05)
    work.add("urgent", "urgent")
    work.add("bulk", "bulk")
    until(lambda: work.begun == ["urgent", "bulk"])


def test_a_text_that_fails_gives_its_slot_back(cleanup: ExitStack) -> None:
    work = texts(cleanup, cores=1)
    for lane in ("urgent", "bulk"):
        with pytest.raises(ValueError, match="broken"), work.slots.slot(lane):
            raise ValueError("broken")
    with pytest.raises(ValueError, match="broken"), work.slots.question():
        raise ValueError("broken")
    work.add("bulk", "bulk")
    until(lambda: work.begun == ["bulk"])
