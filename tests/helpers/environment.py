"""The environment of this process and of the functions that run in it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from shared.platform.runtime import runtime

if TYPE_CHECKING:
    import pytest

ORIGINAL_ENVIRONMENT: Final = dict(os.environ)
"""The environment before any test set up a store in this process, for commands that tests start."""


def adopt_environment(monkeypatch: pytest.MonkeyPatch | None = None) -> None:
    """Give the functions of this process its own environment, as on Lambda, so that tests change it by `setenv`.

    Without a `monkeypatch` that undoes it, it stays so.
    """
    if monkeypatch is None:
        os.environ.update(runtime.environment)
        runtime.environment = os.environ
        return
    for name, value in runtime.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(runtime, "environment", os.environ)
