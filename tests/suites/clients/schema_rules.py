"""The rules by which each provider's API takes a tool's name, description and schema."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MOST_TOOLS: Final = {"openai": 128, "gemini": 512, "anthropic": 512}
_NAMES: Final = {
    "openai": re.compile(r"[A-Za-z0-9_-]{1,64}"),
    "anthropic": re.compile(r"[A-Za-z0-9_-]{1,128}"),
    "gemini": re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}"),
}
_NOT_AT_THE_TOP: Final = ("anyOf", "oneOf", "allOf", "enum", "not")
_NOT_STRICT: Final = ("allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas")
_OPENAPI_SCHEMA: Final = frozenset(
    {"anyOf", "default", "description", "enum", "example", "format", "items", "maxItems", "maxLength", "maxProperties"}
    | {"maximum", "minItems", "minLength", "minProperties", "minimum", "nullable", "pattern", "properties"}
    | {"propertyOrdering", "required", "title", "type"}
)
_PROPERTY: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as a client declares it to a model."""

    name: str
    schema: dict[str, Any]
    description: str = ""
    namespace: str = ""
    is_strict: bool = False
    is_openapi: bool = False
    """The schema is one of OpenAPI, which Gemini takes as `parameters`, and not JSON Schema."""


def problems(provider: str, tools: Sequence[Tool]) -> Iterator[str]:
    """Yield each reason for which the provider would refuse these tools."""
    if len(tools) > _MOST_TOOLS[provider]:
        yield f"{len(tools)} tools"
    names = [tool.namespace + tool.name for tool in tools]
    yield from (f"{name}: twice" for name in sorted({name for name in names if names.count(name) > 1}))
    for tool in tools:
        if not _NAMES[provider].fullmatch(tool.name):
            yield f"{tool.name}: name"
        if tool.schema and tool.schema.get("type", "").lower() != "object":
            yield f"{tool.name}: is not an object"
        if provider != "gemini":
            yield from (f"{tool.name}: {word}" for word in _NOT_AT_THE_TOP if word in tool.schema)
        for path, schema in _schemas(tool.schema, tool.name):
            yield from (f"{path}: {each}" for each in _problems(schema, tool))


def _problems(schema: dict[str, Any], tool: Tool) -> Iterator[str]:
    kind = schema.get("type")
    if "array" in (kind if isinstance(kind, list) else [str(kind).lower()]) and "items" not in schema:
        yield "array without items"
    properties = schema.get("properties", {})
    yield from (f"{name}: name of a property" for name in properties if not _PROPERTY.fullmatch(name))
    yield from (
        f"{name}: required, but not a property" for name in schema.get("required", ()) if name not in properties
    )
    if tool.is_strict:
        yield from (f"{word} in strict mode" for word in _NOT_STRICT if word in schema)
        if kind == "object" and (
            schema.get("additionalProperties") is not False or {*properties} != {*schema["required"]}
        ):
            yield "open object in strict mode"
    if tool.is_openapi:
        yield from (f"{word} in OpenAPI's dialect" for word in schema if word not in _OPENAPI_SCHEMA)
        if isinstance(kind, list):
            yield "several types"


def _schemas(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, each in schema.get("properties", {}).items():
        yield from _schemas(each, f"{path}.{name}")
    inner = [schema.get("items"), schema.get("additionalProperties"), *schema.get("anyOf", ())]
    for each in inner:
        if isinstance(each, dict):
            yield from _schemas(each, f"{path}[]")
