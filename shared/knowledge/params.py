"""How callers name collections and page through lists."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field

Names = Annotated[str, Field(max_length=4096, examples=["notes, papers"])]
"""Names of collections, parted by commas."""
NOT_BLANK: Final[dict[str, Any]] = {"pattern": r"\S"}
"""Says in a schema what is refused with one of the seed's own codes."""


def parse_names(names: str | None) -> list[str]:
    """The names in a list parted by commas."""
    return list(dict.fromkeys(filter(None, (each.strip() for each in (names or "").split(",")))))
