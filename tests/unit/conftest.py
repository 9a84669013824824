"""Unit tests have no network, and the environment with which this process started."""

from __future__ import annotations

import os
from typing import Final

import pytest

from tests.helpers.environment import ORIGINAL_ENVIRONMENT

_SETTINGS: Final = ("KHO_", "AWS_")


@pytest.fixture(autouse=True)
def _without_network(socket_disabled: None) -> None:
    """Fail any test that opens a socket."""


@pytest.fixture(autouse=True)
def _with_original_settings() -> None:
    """Fail any test that runs after one that left settings in the environment."""
    assert _settings(dict(os.environ)) == _settings(ORIGINAL_ENVIRONMENT)


def _settings(environment: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_SETTINGS)}
