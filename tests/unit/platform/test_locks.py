"""Locks by name."""

from __future__ import annotations

import gc
import threading

from shared.platform.locks import FairLock, NamedLocks
from tests.helpers.wait import CEILING_SECONDS, until


def test_threads_get_the_lock_in_the_order_in_which_they_came() -> None:
    """The one that releases it comes last, though it asks again at once."""
    lock, order = FairLock(), list[int]()

    def take(number: int) -> None:
        with lock:
            order.append(number)

    lock.acquire()
    threads = []
    for number in range(5):
        threads.append(threading.Thread(target=take, args=(number,)))
        threads[-1].start()
        until(lambda: len(lock._turns) == len(threads))
    lock.release()
    take(5)
    for thread in threads:
        thread.join(CEILING_SECONDS)
    assert order == [0, 1, 2, 3, 4, 5]
    assert not lock.locked()


def test_a_thread_that_waits_no_longer_is_passed_over() -> None:
    lock = FairLock()
    assert lock.acquire()
    assert lock.locked()
    assert not lock.acquire(timeout=0.01)
    lock.release()
    assert lock.acquire(timeout=0.01)


def test_a_lock_exists_as_long_as_it_counts() -> None:
    locks = NamedLocks[str]()
    first = locks.of("a")
    assert locks.of("a") is first
    assert locks.of("b") is not first
    del first
    gc.collect()
    assert not locks._locks
