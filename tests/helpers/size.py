"""The two sizes of a test: small in `make test`, full in `make stress`."""

from __future__ import annotations

import os
from typing import Final

FULL_SIZE: Final = os.environ.get("KHO_TEST_SIZE") == "full"


def sized(small: int, *, full: int) -> int:
    """Choose the number for the size of this run."""
    return full if FULL_SIZE else small
