"""Parameter types for collection names and paging."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Names = Annotated[str, Field(max_length=4096, examples=["notes, papers"])]
"""Collection names, separated by commas."""


def parse_names(names: str | None) -> list[str]:
    """Return the distinct names in a comma-separated list."""
    return list(dict.fromkeys(filter(None, (each.strip() for each in (names or "").split(",")))))
