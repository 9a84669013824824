"""Input schemas of MCP tools: a method's schema without what a model does not need.

A client sends every definition to its model in every session. Types, limits, enumerations, defaults and descriptions
remain, and examples of what no description, pattern or properties explain. Titles go, and null, which means "omitted"
for every optional parameter: `nullable` says so, without which some clients require each. A least length of 1 goes too,
if a pattern refuses the empty text, and "not", which providers refuse in strict schemas.
"""

import re
from typing import Any, Final

_NULL: Final = {"type": "null"}


def tool_schema(schema: dict[str, Any], defaults: dict[str, Any], hidden: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the schema of a tool's arguments, with other `defaults` of some of them, and without `hidden` ones.

    The tool has a description, so the one of the whole object goes too.
    """
    whole = _shortened({name: value for name, value in schema.items() if name != "description"})
    for name in hidden:
        del whole["properties"][name]
    for name, value in defaults.items():
        whole["properties"][name]["default"] = value
    for name in whole.get("properties", {}).keys() - set(whole.get("required", ())):
        whole["properties"][name]["nullable"] = True
    return whole


def _shortened(schema: dict[str, Any]) -> dict[str, Any]:
    alternatives = [_shortened(each) for each in schema.get("anyOf", ()) if each != _NULL]
    outside = {name: value for name, value in schema.items() if name not in ("anyOf", "not", "title")}
    if len(alternatives) == 1:
        outside = alternatives[0] | outside
    elif alternatives:
        outside["anyOf"] = alternatives
    if "properties" in outside:
        outside["properties"] = {name: _shortened(each) for name, each in outside["properties"].items()}
    if "items" in outside:
        outside["items"] = _shortened(outside["items"])
    examples = outside.get("examples", [])
    is_explained = "enum" in outside or "default" in outside or "description" in outside or "pattern" in outside
    if is_explained and ("properties" in outside or all(isinstance(each, str) for each in examples)):
        outside.pop("examples", None)
    if outside.get("additionalProperties") is True:
        del outside["additionalProperties"]  # it is the default
    if outside.get("minLength") == 1 and "pattern" in outside and not re.search(outside["pattern"], ""):
        del outside["minLength"]
    if "default" in outside and _is_implied(outside["default"], outside):
        del outside["default"]
    return outside


def _is_implied(default: Any, schema: dict[str, Any]) -> bool:
    """Return True if omitting the value and giving its default are the same for a reader of the schema."""
    if isinstance(default, dict):
        properties = schema.get("properties", {})
        return all(value is None or value == properties[name].get("default") for name, value in default.items())
    return default is None
