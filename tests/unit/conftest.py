"""Unit tests have no network."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _without_network(socket_disabled: None) -> None:
    """Fail any test that opens a socket."""
