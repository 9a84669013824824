"""TypeScript types of the methods' parameters and results, from the OpenAPI document: `Methods[name]["result"]`."""

from __future__ import annotations

import json
from typing import Any, Final

from discovery.openapi import document
from infra.local.methods import add_methods
from infra.local.template import load
from shared.rpc.catalogue import catalogue

_TYPES: Final = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def method_types() -> str:
    """Return the module's text, with the methods of one machine."""
    add_methods(load())
    paths = document()["paths"]
    lines = ["export interface Methods {"]
    for name in catalogue().methods:
        method = paths[f"/{name}"]["post"]
        params = method["requestBody"]["content"]["application/json"]["schema"]
        result = method["responses"]["200"]["content"]["application/json"]["schema"]
        lines.append(f"  {json.dumps(name)}: {{ params: {type_of(params)}; result: {type_of(result)} }};")
    return "\n".join([*lines, "}", ""])


def type_of(schema: dict[str, Any]) -> str:
    """Return a schema's type. A field that is not required may be left out."""
    if "enum" in schema or "const" in schema:
        return " | ".join(json.dumps(each) for each in schema.get("enum", [schema.get("const")]))
    if kinds := schema.get("anyOf") or schema.get("oneOf"):
        return " | ".join(f"({type_of(each)})" for each in kinds)
    match schema.get("type"):
        case "array":
            return f"({type_of(schema.get('items', {}))})[]"
        case "object" if "properties" in schema:
            required = schema.get("required", [])
            fields = (
                f"{json.dumps(name)}{'' if name in required else '?'}: {type_of(field)}"
                for name, field in schema["properties"].items()
            )
            return f"{{ {'; '.join(fields)} }}"
        case "object":
            return "Record<string, any>"
        case str(kind):
            return _TYPES[kind]
    return "any"
