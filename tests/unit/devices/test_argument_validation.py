"""Arguments are compared with schemas of hostile devices in bounded time."""

from __future__ import annotations

from typing import Any

import pytest

from shared.devices.argument_validation import validate_arguments
from shared.devices.schema_size import UnboundedSchemaError, schema_size
from shared.devices.tool_catalogue import DeviceTool
from shared.rpc.errors import InvalidParams, ToolFailed
from shared.rpc.strict_json import value_size


def validate(schema: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    return validate_arguments(DeviceTool("lamp.set", "", schema), arguments)


def problems(schema: dict[str, Any], arguments: dict[str, Any]) -> list[str]:
    with pytest.raises(InvalidParams) as error:
        validate(schema, arguments)
    return [f"{each['field']}: {each['message']}" for each in error.value.details]


def test_schema_with_references_is_followed() -> None:
    schema = {
        "$id": "https://lamp.example/schema",
        "properties": {"color": {"$ref": "#/$defs/a~1b"}, "other": {"$ref": "#/$defs/%61~1b/anyOf/1"}},
        "$defs": {"a/b": {"anyOf": [{"const": "red"}, {"type": "integer"}]}},
    }
    assert validate(schema, {"color": "red", "other": 1}) == {"color": "red", "other": 1}
    assert problems(schema, {"color": "blue", "other": "red"})[1] == 'arguments.other: "red" is not of type "integer"'


def doubling(depth: int) -> dict[str, Any]:
    """Return a schema each of whose parts names the next one twice."""
    parts = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(depth)}
    return {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": parts | {f"d{depth}": {"type": "string"}}}


def reevaluating(depth: int) -> dict[str, Any]:
    """Return a schema that a validator evaluates twice at each level."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"if": schema, "then": True, "unevaluatedProperties": False}
    return schema


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"properties": {"a": schema}}
    return schema


HOSTILE = {
    "doubling": doubling(25),
    "reevaluating": reevaluating(25),
    "recursive": {"properties": {"a": {"$ref": "#"}}},
    "mutually recursive": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    "long chain": {"$ref": "#/0", **{str(n): {"$ref": f"#/{n + 1}"} for n in range(100)}, "100": {}},
    "large": {"properties": {f"a{number}": {"type": "string"} for number in range(2_000)}},
    "other document": {"$ref": "https://schemas.example/lamp"},
    "anchor": {"$ref": "#lamp", "$defs": {"a": {"$anchor": "lamp"}}},
    "dynamic": {"$dynamicRef": "#lamp", "$dynamicAnchor": "lamp"},
    "other base": {"properties": {"a": {"$id": "https://lamp.example/", "$ref": "#/$defs/b"}}, "$defs": {"b": {}}},
    "missing part": {"$ref": "#/$defs/missing"},
    "missing number": {"$ref": "#/allOf/" + "9" * 5_000, "allOf": [{}]},
    "large pattern": {"properties": {"a": {"pattern": "^(a{100}){1000}$"}}},
    "deep": nested(2_000),
}


@pytest.mark.parametrize("schema", HOSTILE.values(), ids=HOSTILE)
def test_schema_that_needs_unbounded_work_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ToolFailed) as error:
        validate(schema, {"a": "x"})
    assert error.value.code == "TOOL_UNDESCRIBED"


def test_arguments_beyond_the_bound_of_work_are_refused() -> None:
    schema = {"properties": {"a": {"items": {"anyOf": [{"const": number} for number in range(400)]}}}}
    assert validate(schema, {"a": [399] * 500}) == {"a": [399] * 500}
    refusal = ["arguments: are too long to be compared with the tool's schema"]
    assert problems(schema, {"a": [399] * 5_000}) == refusal
    assert problems({}, {"a": "x" * 10_000_000}) == refusal
    assert validate({}, {"a": "x" * 100_000}) == {"a": "x" * 100_000}


def test_every_problem_of_ordinary_arguments_is_reported_and_the_first_of_very_many() -> None:
    schema = {"properties": {"a": {"items": {"type": "string"}}}}
    assert len(problems(schema, {"a": [1] * 100})) == 100
    assert len(problems(schema, {"a": [1] * 10_000})) == 1


def test_sizes() -> None:
    assert value_size({"a": [1, "x" * 16, None]}) == 7
    part = {"type": "string"}
    alone = schema_size(part)
    assert schema_size({"allOf": [part, part]}) == 2 * alone + 3
    referring = {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": part}}
    assert schema_size(referring) > 3 * alone
    with pytest.raises(UnboundedSchemaError):
        schema_size({"$recursiveRef": "#"})
