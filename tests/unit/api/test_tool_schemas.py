"""The tools' input schemas against the full schemas of their methods."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from shared.rpc.catalogue import catalogue
from shared.rpc.mcp_catalog import mcp_catalog
from shared.rpc.strict_json import compact

if TYPE_CHECKING:
    from shared.rpc.mcp_catalog import McpToolEntry

KEPT = (
    "type",
    "enum",
    "const",
    "format",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "required",
)
METHODS = [each for each in mcp_catalog().tools if not each.by_name]


REFUSED_IN_STRICT_SCHEMAS = ("allOf", "oneOf", "not", "if", "dependentRequired", "dependentSchemas")


@pytest.mark.parametrize("tool", mcp_catalog().tools, ids=lambda tool: tool.name)
def test_schema_has_no_keyword_that_providers_refuse(tool: McpToolEntry) -> None:
    keywords = re.findall(r'"(\w+)":', compact(tool.described["inputSchema"]))
    assert not set(keywords) & set(REFUSED_IN_STRICT_SCHEMAS)


def without_null(schema: dict[str, Any]) -> dict[str, Any]:
    choices = [each for each in schema.get("anyOf", []) if each != {"type": "null"}]
    return choices[0] | {name: value for name, value in schema.items() if name != "anyOf"} if choices else schema


def lost(full: dict[str, Any], short: dict[str, Any], path: str = "") -> list[str]:
    """Return the constraints, defaults and descriptions of fields that the short schema lacks."""
    full = without_null(full)
    if full.get("minLength") == 1 and "pattern" in full and not re.search(full["pattern"], ""):
        full = {name: value for name, value in full.items() if name != "minLength"}  # the pattern requires it
    missing = [f"{path}: {name}" for name in KEPT if full.get(name) != short.get(name)]
    if (full.get("additionalProperties") is False) != (short.get("additionalProperties") is False):
        missing.append(f"{path}: additionalProperties")
    default = full.get("default")
    if default is not None and not isinstance(default, dict) and default != short.get("default"):
        missing.append(f"{path}: default")
    if path and full.get("description", "") not in short.get("description", ""):
        missing.append(f"{path}: description")
    for name, field in full.get("properties", {}).items():
        missing += lost(field, short["properties"][name], f"{path}.{name}")
    if "items" in full:
        missing += lost(full["items"], short["items"], f"{path}[]")
    return missing


HIDDEN = {"search": ("include_messages",), "fetch": ("include_messages",)}
"""Parameters that are not offered to models."""


@pytest.mark.parametrize("tool", METHODS, ids=lambda tool: str(tool.name))
def test_short_schema_keeps_every_constraint(tool: McpToolEntry) -> None:
    full = catalogue().methods[tool.method].params
    described = {name: field | {"default": tool.defaults.get(name, field.get("default"))} for name, field in
                 full.get("properties", {}).items() if name not in HIDDEN.get(tool.name, ())}  # fmt: skip
    assert lost(full | {"properties": described}, tool.described["inputSchema"]) == []


@pytest.mark.parametrize("tool", METHODS, ids=lambda tool: str(tool.name))
def test_short_schema_has_neither_titles_nor_null(tool: McpToolEntry) -> None:
    def members(node: Any) -> list[Any]:
        inner = list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else []
        return [node, *(found for each in inner for found in members(each))]

    for each in members(tool.described["inputSchema"]):
        assert each is not None
        assert each != {"type": "null"}
        assert not (isinstance(each, dict) and "type" in each and isinstance(each.get("title"), str))
