"""Filters by metadata: exact values of keys, or lists of values of which one is enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import AfterValidator, Field, WithJsonSchema

from shared.rpc.strict_json import compact

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_KEYS: Final = 16
_MOST_VALUES: Final = 64
_MAX_PAIR: Final = 512
_MOST_PAIRS: Final = 512
"""Each passage of a document has them."""


def pairs(key: str, value: Any) -> set[str]:
    """Return a key with each of its values as text. Objects have none."""
    values = value if isinstance(value, list) else [value]
    return {f"{key}={compact(_whole(each))}" for each in values if isinstance(each, str | int | float)}


def all_pairs(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the pairs of all keys by which passages are filtered. Longer ones than a filter may have are left out."""
    each = sorted(set().union(*(pairs(key, value) for key, value in metadata.items())))
    return tuple(pair for pair in each if len(pair) <= _MAX_PAIR)[:_MOST_PAIRS]


def matches(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return True if each wanted key has one of its wanted values, alone or in a list."""
    return all(pairs(key, metadata.get(key)) & pairs(key, value) for key, value in wanted.items())


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _require_values(wanted: dict[str, Any]) -> dict[str, Any]:
    for key, value in wanted.items():
        values = value if isinstance(value, list) else [value]
        if not (0 < len(values) <= _MOST_VALUES and all(isinstance(each, str | int | float) for each in values)):
            raise ValueError(
                f"should have as '{key[:64]}' a text, a number, a boolean or a list of up to {_MOST_VALUES}"
            )
        if any(len(pair) > _MAX_PAIR for pair in pairs(key, value)):
            raise ValueError(f"should have values that are with their key at most {_MAX_PAIR} characters long")
    return wanted


MetadataFilter = Annotated[
    dict[str, Any],
    Field(max_length=MOST_KEYS, description="each key's value, or a list of possible ones"),
    AfterValidator(_require_values),
    WithJsonSchema({"type": "object", "maxProperties": MOST_KEYS, "examples": [{"source": "cursor"}]}),
]
"""The wanted values of each key in a request."""
