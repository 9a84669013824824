"""Integration tests use the real local store."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from tests.store import running_store

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session", autouse=True)
def store() -> Iterator[str]:
    """The store's address; functions called in this process use it."""
    with running_store() as url:
        yield url


@pytest.fixture
def tenant() -> str:
    """A tenant that no other test has used."""
    return f"tenant-{uuid4().hex}"
