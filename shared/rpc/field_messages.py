"""Messages about invalid fields, in words: pydantic's own name regular expressions and classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

PATTERNS: Final[dict[str, str]] = {r"\S": "not blank"}
"""Patterns of fields, in words."""
MISSING: Final = "is required"
"""The problem of a missing parameter."""
_MESSAGES: Final = {
    "missing": MISSING,
    "extra_forbidden": "is not a field of this method",
    "model_type": "should be a JSON object",
    "model_attributes_type": "should be a JSON object",
    "dict_type": "should be a JSON object",
    "list_type": "should be an array",
    "tuple_type": "should be an array",
}
_LENGTHS: Final = {
    "string_too_short": ("at least", "min_length", "character"),
    "string_too_long": ("at most", "max_length", "character"),
    "too_short": ("at least", "min_length", "item"),
    "too_long": ("at most", "max_length", "item"),
}


def worded(pattern: str, words: str) -> str:
    """Return `pattern`. Messages and the reference say `words` instead of it."""
    PATTERNS[pattern] = words
    return pattern


def message_of(kind: str, message: str, context: Mapping[str, object]) -> str:
    """Return the message of one of pydantic's errors."""
    if kind == "string_pattern_mismatch":
        return f"should be {PATTERNS[str(context['pattern'])]}"
    if kind in _LENGTHS:
        bound, limit, unit = _LENGTHS[kind]
        number = context[limit]
        return f"should have {bound} {number} {unit}{'' if number == 1 else 's'}"
    return _MESSAGES.get(kind) or message.removeprefix("Value error, ").replace("Input should", "should", 1)
