"""Size limits of paged answers."""

from __future__ import annotations

import json
from typing import Any, Final

MAX_PAGE_BYTES: Final = 5 * 1024 * 1024
"""The limit of a page, below Lambda's 6 MB. An item's size counts with its escaping."""


def answer_bytes(value: Any, *, nested: int = 0) -> int:
    """Return the size of `value` in a function's answer, inside `nested` further JSON texts."""
    text = json.dumps(value, ensure_ascii=False)
    for _ in range(nested + 1):
        text = json.dumps(text, ensure_ascii=False)
    return len(text.encode("utf-8"))
