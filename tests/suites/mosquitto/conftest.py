"""Fixtures that replace the embedded broker by mosquitto."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.helpers.dynamodb import running_store
from tests.suites.mosquitto.broker import running_mosquitto

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session", autouse=True)
def store() -> Iterator[str]:
    """Run the store that functions in this process use. Yield its address."""
    with running_store() as url:
        yield url


@pytest.fixture(scope="session")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Run mosquitto. Yield its port."""
    with running_mosquitto(tmp_path_factory.mktemp("mosquitto")) as listening:
        yield listening
