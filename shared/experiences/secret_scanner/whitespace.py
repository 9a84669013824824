"""What nobody sees in a text: blanks, and characters that take no room."""

from __future__ import annotations

import re
from typing import Final

INVISIBLE: Final = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff"
    r"\uffa0"
)
"""Characters that show nothing and are no blanks, as a pattern's class lists them."""
_SEEN: Final = re.compile(rf"[^\s{INVISIBLE}]")


def is_blank(text: str) -> bool:
    """Whether nothing of `text` can be seen."""
    return _SEEN.search(text) is None
