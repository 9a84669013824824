"""Parameters with many unknown fields or many values: the promised numbers pass, one more is refused."""

from __future__ import annotations

from typing import Any

import pytest

from shared.rpc.errors import InvalidParams
from shared.rpc.unknown_fields import crowded_field, many_unknown_fields, refuse_large_params


def fields(number: int) -> dict[str, Any]:
    return {f"u{each}": each for each in range(number)}


def problem(params: dict[str, Any], known: tuple[str, ...] | None = None) -> Any:
    with pytest.raises(InvalidParams) as refused:
        refuse_large_params(params, known)
    return refused.value.details[0]


def test_twenty_unknown_fields_are_left_to_the_method() -> None:
    refuse_large_params(fields(20) | {"known": 1}, ("known", "absent"))
    refused = problem(fields(21) | {"known": 1}, ("known", "absent"))
    assert refused["field"] == "params"
    assert refused["message"].startswith("has 21 unknown fields; the first: u0, u1")
    assert "u19" in refused["message"]
    assert "u20" not in refused["message"]


def test_names_of_unknown_fields_are_shortened_and_encodable() -> None:
    described = many_unknown_fields({"x" * 51: 1, "\ud800": 2}, (), tolerated=1)
    assert described == f"has 2 unknown fields; the first: {'x' * 50}, \\ud800"


def nested(number: int) -> list[Any]:
    """Return values of each kind that count as so many next to their field."""
    return [
        [0] * number,
        {str(each): 0 for each in range(number)},
        [[0] * (number - 1)],
        [[]] * (number - 1) + [[]],
        2 ** (number * 100),
    ]


def test_a_hundred_thousand_values_are_accepted_and_no_more() -> None:
    """The field is one of them. A number of thousands of digits counts as many."""
    for value in nested(99_999):
        assert crowded_field({"field": value}) is None
    for value in nested(100_000):
        assert crowded_field({"small": [], "large": value, "after": 1}) == "large"
        assert crowded_field({"large": value}) == "large"
    assert crowded_field({"large": [[0] * 5, *[0] * 99_998]}) == "large", "what is inside counts too"
    message = "has too many values; parameters hold at most 100,000"
    assert problem({"large": [0] * 100_000}) == {"field": "large", "message": message}


def test_large_object_is_refused_with_its_first_fields() -> None:
    refused = problem({"x" * 60: fields(100_000)})
    assert refused["field"] == "x" * 50
    assert refused["message"].startswith(
        "has too many values; parameters hold at most 100,000; the first fields: u0, u1"
    )
