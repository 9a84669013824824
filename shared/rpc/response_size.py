"""How long an answer may grow before it is paged."""

from __future__ import annotations

import json
from typing import Any, Final

MAX_PAGE_BYTES: Final = 5 * 1024 * 1024
"""A function's answer ends at 6 MB; what an item costs there is counted, escaping included."""


def answer_bytes(value: Any, *, nested: int = 0) -> int:
    """What `value` costs in a function's answer, inside `nested` further JSON texts."""
    text = json.dumps(value, ensure_ascii=False)
    for _ in range(nested + 1):
        text = json.dumps(text, ensure_ascii=False)
    return len(text.encode("utf-8"))
