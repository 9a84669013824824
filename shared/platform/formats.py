"""The formats of stored data, by which a program recognises newer data and refuses it by name.

A table, an index and a data folder each have a record of their format, and of the program that gave it to them. Data
without a record has format 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from shared.platform.config import ConfigurationError
from shared.platform.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

INDEX_FORMAT: Final = 1
"""The format of the points in a search index. `kho reindex --anew` rebuilds an index from the tables."""


class DataTooNew(ConfigurationError):
    """Data of a newer program, which this one cannot read."""


def format_record(number: int) -> dict[str, Any]:
    """Return the record of a format that this program gives to data."""
    return {"format": number, "program": VERSION}


def require_known_format(place: str, recorded: Mapping[str, Any], newest: int) -> int:
    """Return the recorded format of the data at `place`. Raise an error if it is newer than `newest`."""
    number = int(recorded.get("format", 0))
    if number > newest:
        program = recorded.get("program", "a newer version")
        raise DataTooNew(
            f"{place} has format {number}, and Kho {VERSION} reads formats up to {newest}: use Kho {program} or newer"
        )
    return number
