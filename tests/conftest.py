"""Every test that `make stress` runs carries its promise, for the table that is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Record the first line of the docstring of a stress test as its promise."""
    if item.get_closest_marker("stress"):
        item.user_properties.append(("promise", item.obj.__doc__.partition("\n")[0]))  # type: ignore[attr-defined]
