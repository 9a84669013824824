"""Settings of every test run, and the promises of the tests that `make stress` runs, for the table that is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    import pytest

# No example fails because it, or the making of its data, took long on a busy machine.
settings.register_profile("any-speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-speed")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Record the first line of the docstring of a stress test as its promise."""
    if item.get_closest_marker("stress"):
        item.user_properties.append(("promise", item.obj.__doc__.partition("\n")[0]))  # type: ignore[attr-defined]
