"""Whitespace and invisible characters."""

import re
from typing import Any, Final

INVISIBLE: Final = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff"
    r"\uffa0\U000e0000-\U000e0fff"
)
"""Invisible characters other than whitespace, as the content of a regex character class."""
NOT_BLANK: Final[dict[str, Any]] = {"pattern": r"\S"}
"""The JSON Schema of `not_blank`. It does not list the invisible characters, which `not_blank` rejects too."""
_VISIBLE: Final = re.compile(rf"[^\s{INVISIBLE}]")


def is_blank(text: str) -> bool:
    """Return True if `text` has no visible character."""
    return _VISIBLE.search(text) is None


def not_blank(text: str) -> str:
    """Return `text`. Raise ValueError if it has no visible character."""
    if is_blank(text):
        raise ValueError("should not be empty")
    return text
