"""Filters by metadata: exact values of keys, or lists of values of which one is enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import AfterValidator, Field, WithJsonSchema

from shared.rpc.strict_json import compact

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_KEYS: Final = 16
_MOST_VALUES: Final = 64


def pairs(key: str, value: Any) -> set[str]:
    """Return a key with each of its values as text. Objects have none."""
    values = value if isinstance(value, list) else [value]
    return {f"{key}={compact(_whole(each))}" for each in values if isinstance(each, str | int | float)}


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
                f"should have a text, a number, a boolean or a list of up to {_MOST_VALUES} as '{key[:64]}'"
            )
    return wanted


MetadataFilter = Annotated[
    dict[str, Any],
    Field(max_length=MOST_KEYS, description="the value of each key, or several of which one is enough"),
    AfterValidator(_require_values),
    WithJsonSchema({"type": "object", "maxProperties": MOST_KEYS, "examples": [{"source": "cursor"}]}),
]
"""The wanted values of each key in a request."""
