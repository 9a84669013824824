"""Ids of messages. An id names the generation and the number, neither of which is ever used again."""

from __future__ import annotations

import re
from typing import Final

_PATTERN: Final = re.compile(r"msg_([0-9a-f]{32})_([1-9][0-9]{0,11})")


def message_id(generation: str, number: int) -> str:
    """Return the id of a message."""
    return f"msg_{generation}_{number}"


def number_of(message_id: str, generation: str) -> int | None:
    """Return the number of the message with an id, or None if it is not one of this generation."""
    match = _PATTERN.fullmatch(message_id)
    return int(match[2]) if match and match[1] == generation else None
