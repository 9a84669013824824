"""Validation of tool arguments by the device's input schema (JSON Schema), and of values that firmware misreads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from shared.devices.errors import tool_undescribed
from shared.rpc.errors import FieldProblem, InvalidParams
from shared.rpc.strict_json import encodable, value_size

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

    from shared.devices.tool_catalogue import DeviceTool

_INT32: Final = (-(2**31), 2**31 - 1)
_MAX_PROBLEM_CHARACTERS: Final = 300
_MAX_PATTERN_BYTES: Final = 64 * 1024
"""The limit of a compiled pattern."""
_MAX_WORK: Final = 1_000_000
"""The limit of the product of the sizes of schema and arguments. That of a board's tool is a few thousand."""
_MAX_REPORTED_WORK: Final = 10_000
"""The product up to which each problem is reported, not the first alone: an error costs 10 µs and 3 KB."""


def validate_arguments(tool: DeviceTool, params: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments as they are sent. Raise InvalidParams naming each invalid one."""
    properties = tool.input_schema.get("properties")
    declared = properties if isinstance(properties, dict) else {}
    arguments = _normalize_names(declared, params)
    problems = [_field_problem(error) for error in _errors(tool, arguments)]
    invalid_fields = {problem["field"] for problem in problems}
    problems += [
        FieldProblem(field=_field(name), message=problem)
        for name, value in arguments.items()
        if (problem := _firmware_misreading(value)) and _field(name) not in invalid_fields
    ]
    if problems:
        raise InvalidParams(*problems)
    return {name: int(value) if _is_whole(value) else value for name, value in arguments.items()}


def _normalize_names(declared: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """Map each argument to its declared name. Firmware ignores case in names and would accept others unchecked."""
    names = {name.lower(): name for name in declared}
    normalized: dict[str, Any] = {}
    for name, value in params.items():
        declared_name = name if name in declared else names.get(name.lower(), name)
        if declared_name in normalized:
            raise InvalidParams(FieldProblem(field=_field(declared_name), message="is given twice, in different case"))
        normalized[declared_name] = value
    return normalized


def _errors(tool: DeviceTool, arguments: dict[str, Any]) -> list[ValidationError]:
    import jsonschema_rs

    try:
        work = tool.schema_size * value_size(arguments)
        # The schema is untrusted: remote references are disabled, and its patterns run in linear time.
        validator = jsonschema_rs.Draft202012Validator(
            tool.input_schema,
            offline=True,
            pattern_options=jsonschema_rs.RegexOptions(
                size_limit=_MAX_PATTERN_BYTES, dfa_size_limit=_MAX_PATTERN_BYTES
            ),
        )
    except (ValueError, RecursionError, jsonschema_rs.ReferencingError):
        raise tool_undescribed(tool.name) from None
    if work > _MAX_WORK:
        raise InvalidParams(
            FieldProblem(field="arguments", message="are too long to be compared with the tool's schema")
        )
    if validator.is_valid(arguments):
        return []
    if work <= _MAX_REPORTED_WORK:
        return list(validator.iter_errors(arguments))
    try:
        validator.validate(arguments)
    except jsonschema_rs.ValidationError as error:
        return [error]
    return []


def _field_problem(error: ValidationError) -> FieldProblem:
    missing = getattr(error.kind, "property", None)
    path = [*error.instance_path, *([missing] if error.kind.name == "required" and isinstance(missing, str) else [])]
    message = "is required" if error.kind.name == "required" else encodable(error.message)[:_MAX_PROBLEM_CHARACTERS]
    return FieldProblem(field=_field(*path), message=message)


def _field(*path: str | int) -> str:
    return encodable(".".join(["arguments", *map(str, path)]))[:_MAX_PROBLEM_CHARACTERS]


def _firmware_misreading(value: Any) -> str:
    """Return a problem if firmware would change a value that the schema allows, else an empty string."""
    if isinstance(value, str) and "\0" in value:
        return "contains a NUL; the device would truncate the text there"
    if isinstance(value, int | float) and not isinstance(value, bool) and not _INT32[0] <= value <= _INT32[1]:
        return "exceeds 32 bits; the device would truncate the number"
    return ""


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()
