"""Settings of every test run, and the promises of the tests that `make stress` runs, for the table that is kept."""

from __future__ import annotations

import gc
import signal
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.helpers.size import FULL_SIZE

if TYPE_CHECKING:
    from collections.abc import Generator

# No example fails because it, or the making of its data, took long on a busy machine.
settings.register_profile("any-speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-speed")

# A shell makes what it starts in the background ignore Ctrl-C, and a test's programs would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without garbage collection: all that collection makes lives as long as the run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Record the first line of the docstring of a stress test as its promise."""
    if item.get_closest_marker("stress"):
        item.user_properties.append(("promise", item.obj.__doc__.partition("\n")[0]))  # type: ignore[attr-defined]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order a run at full size: the functions of many cases, which are short, come last and occupy all workers."""
    if FULL_SIZE:
        cases = Counter(_function(item) for item in items)
        items.sort(key=lambda item: cases[_function(item)])


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]
