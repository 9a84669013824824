"""End-to-end tests go through the doors of a real server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that tests share; each uses conversations of its own."""
    nowhere = {"KHO_SEARCH_PROXY": "http://127.0.0.1:9"}
    with Server(tmp_path_factory.mktemp("kho") / "data", environment=nowhere) as running:
        yield running
