"""The environment of this process: the one it started with, and others for a while."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ORIGINAL_ENVIRONMENT: Final = dict(os.environ)
"""The environment before any test set up a store in this process, for commands that tests start."""
_OF_PYTEST: Final = "PYTEST_"


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Give this process exactly these variables while the block runs. pytest's own change as it sets them."""
    before = dict(os.environ)
    _replace(variables)
    try:
        yield
    finally:
        _replace(before)


def _replace(variables: Mapping[str, str]) -> None:
    for name in [name for name in os.environ if not name.startswith(_OF_PYTEST)]:
        del os.environ[name]
    os.environ.update({name: value for name, value in variables.items() if not name.startswith(_OF_PYTEST)})
