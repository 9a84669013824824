"""Debian's libfaketime, which gives a program a wrong clock."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from tests.helpers.debian import unpack

FETCHED: Final = Path(sys.prefix) / "share" / "faketime"


def find() -> Path | None:
    """Return the path of the library: installed, or fetched for these tests."""
    found = [
        file for root in (FETCHED, Path("/")) for file in root.glob("usr/lib/*-linux-gnu/faketime/libfaketime.so.1")
    ]
    return found[0] if found else None


def fetch() -> None:
    """Fetch the library from Debian."""
    unpack(FETCHED, "libfaketime")


def environment(days: int) -> dict[str, str]:
    """Return the variables that make the clock of a program wrong by so many days. Durations stay right."""
    if not days:
        return {}
    library = find()
    assert library, "run this with 'make clocks', which fetches it"
    return {"LD_PRELOAD": str(library), "FAKETIME": f"{days:+}d", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
