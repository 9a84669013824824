"""The two sizes of a benchmark: small in smoke mode, full in `make bench`."""

from __future__ import annotations

import os
from typing import Final, TypeVar

T = TypeVar("T")

VARIABLE: Final = "KHO_BENCH_SIZE"
"""`python -m tests.suites.bench --smoke` sets it to `smoke` for the processes that it starts."""
SMOKE: Final = os.environ.get(VARIABLE) == "smoke"


def sized(small: T, *, full: T) -> T:
    """Choose the value for the size of this run."""
    return small if SMOKE else full
