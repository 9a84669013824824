"""Arguments checked against what the device says it takes, and against what it takes wrongly without a word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from shared.devices.errors import tool_undescribed
from shared.rpc.errors import FieldProblem, InvalidParams
from shared.rpc.strict_json import encodable

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

    from shared.devices.tool_catalogue import DeviceTool

_INT32: Final = (-(2**31), 2**31 - 1)
_MAX_SAID: Final = 300


def validate_arguments(tool: DeviceTool, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments as they are sent, or an error that names each that is wrong."""
    properties = tool.input_schema.get("properties")
    declared = properties if isinstance(properties, dict) else {}
    arguments = _normalize_names(declared, given)
    problems = [_problem(error) for error in _errors(tool, arguments)]
    named = {problem["field"] for problem in problems}
    problems += [
        FieldProblem(field=_field(name), message=said)
        for name, value in arguments.items()
        if (said := _firmware_misreading(value)) and _field(name) not in named
    ]
    if problems:
        raise InvalidParams(*problems)
    return {name: int(value) if _is_whole(value) else value for name, value in arguments.items()}


def _normalize_names(declared: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Each argument under its declared name: firmware takes names in any case, and so would take them unchecked."""
    names = {name.lower(): name for name in declared}
    respelt: dict[str, Any] = {}
    for name, value in given.items():
        meant = name if name in declared else names.get(name.lower(), name)
        if meant in respelt:
            raise InvalidParams(FieldProblem(field=_field(meant), message="is given twice, in different case"))
        respelt[meant] = value
    return respelt


def _errors(tool: DeviceTool, arguments: dict[str, Any]) -> list[ValidationError]:
    import jsonschema_rs

    try:
        # The schema is a stranger's: it may name nothing elsewhere, and its patterns take linear time.
        validator = jsonschema_rs.Draft202012Validator(
            tool.input_schema, offline=True, pattern_options=jsonschema_rs.RegexOptions()
        )
    except (ValueError, jsonschema_rs.ReferencingError):
        raise tool_undescribed(tool.name) from None
    return list(validator.iter_errors(arguments))


def _problem(error: ValidationError) -> FieldProblem:
    missing = getattr(error.kind, "property", None)
    path = [*error.instance_path, *([missing] if error.kind.name == "required" and isinstance(missing, str) else [])]
    said = "is required" if error.kind.name == "required" else encodable(error.message)[:_MAX_SAID]
    return FieldProblem(field=_field(*path), message=said)


def _field(*path: str | int) -> str:
    return encodable(".".join(["arguments", *map(str, path)]))[:_MAX_SAID]


def _firmware_misreading(value: Any) -> str:
    """What firmware would make of a value that the schema allows, where that is something else."""
    if isinstance(value, str) and "\0" in value:
        return "holds a NUL, at which the device would cut it off"
    if isinstance(value, int | float) and not isinstance(value, bool) and not _INT32[0] <= value <= _INT32[1]:
        return "is beyond 32 bits, to which the device would cut it"
    return ""


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()
