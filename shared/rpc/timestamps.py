"""Timestamps: ISO 8601 in the API, microseconds since 1970 in the store, where conditions compare them."""

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, WithJsonSchema

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_FIRST: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_RFC_3339: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")


def now() -> int:
    """Return the current time."""
    return (datetime.now(UTC) - _EPOCH) // _MICROSECOND


def to_iso(timestamp: int) -> str:
    """Format a timestamp in UTC, with milliseconds or microseconds if it has any."""
    text = (_EPOCH + timestamp * _MICROSECOND).replace(tzinfo=None).isoformat()
    return f"{text.removesuffix('000')}Z" if "." in text else f"{text}Z"


def optional_iso(timestamp: int | None) -> str | None:
    """Format a timestamp if there is one."""
    return None if timestamp is None else to_iso(timestamp)


def from_iso(text: Any) -> int:
    """Parse an RFC 3339 timestamp. Raise ValueError if it is not one.

    A timestamp whose offset moves it out of the years 1 to 9999 becomes the first or the last of these years in UTC.
    """
    if isinstance(text, str) and _RFC_3339.fullmatch(text.upper()):
        with suppress(ValueError):
            time = datetime.fromisoformat(text.upper())
            return min(max((time - _EPOCH) // _MICROSECOND, _FIRST), _LAST)
    raise ValueError("should be a time such as 2025-09-16T03:00:00Z")


Timestamp = Annotated[
    int,
    BeforeValidator(from_iso),
    WithJsonSchema({"type": "string", "format": "date-time", "maxLength": 35, "examples": ["2025-09-16T03:00:00Z"]}),
]
"""A timestamp in a request."""
