"""The generated part of `docs/reference/<server>.md`: each method's parameters, result, errors and an example."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from api.error_formats import dialect_of, status_of
from infra.deploy.field_descriptions import field_description
from shared.rpc import errors
from shared.rpc.field_messages import PATTERNS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shared.rpc.errors import KhoError

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = ROOT / "docs" / "reference"
ANSWERS: Final = PAGES / "answers"
"""Answers to the sample events of methods, recorded by `python -m tests.record_answers`."""

_MAX_DEPTH: Final = 4
_WIDTH: Final = 110
"""The server that numbers errors by the first word of their code."""


def method_sections(
    catalogue: dict[str, Any], mcp_catalog: dict[str, Any], examples: dict[str, dict[str, Any]]
) -> dict[Path, list[str]]:
    """Return the lines between the markers of each server's page; `examples` are parameters by function."""
    tools = {tool["method"]: tool["described"] for tool in mcp_catalog["tools"] if not tool.get("by_name")}
    return {
        PAGES / f"{server['name']}.md": [
            line
            for method in catalogue["methods"]
            if method["name"].startswith(f"{server['name']}/")
            for line in _method(method, tools.get(method["name"]), examples[method["function"]])
        ]
        for server in catalogue["servers"]
    }


def _method(method: dict[str, Any], tool: dict[str, Any] | None, example: dict[str, Any]) -> Iterator[str]:
    name = method["name"]
    server = name.partition("/")[0]
    yield from ("", f"### {name.partition('/')[2]}", "")
    yield method["summary"][:1].upper() + method["summary"][1:]
    yield from ("", "| | |", "|---|---|", f"| Route | `POST /{name}` |")
    yield f"| Role | {'none' if method.get('anonymous') else method['role']} |"
    if tool:
        yield f"| MCP tool | `{tool['name']}` ({tool['title']}) |"
    yield f"| Errors | {', '.join(_errors(server, method['errors'])) or 'none of its own'} |"
    yield ""
    fields = list(_fields(method["params"], method["params"].get("$defs", {})))
    if fields:
        yield from ("| parameter | type | required | default | limits | description |", "|---|---|---|---|---|---|")
        yield from (
            f"| `{path}` | {_type(schema)} | {'yes' if required else 'no'} | {_default(schema)} | {_limits(schema)} "
            f"| {_cell(field_description(server, path, schema))} |"
            for path, schema, required in fields
        )
    else:
        yield "It takes no parameters."
    yield from ("", "| result | type | description |", "|---|---|---|")
    yield from (
        f"| `{path}` | {_type(schema)}{'' if required else ', optional'} "
        f"| {_cell(field_description(server, path, schema))} |"
        for path, schema, required in _fields(method["result"], method["result"].get("$defs", {}))
    )
    yield from _example(method["function"], example)


def _errors(server: str, names: list[str]) -> Iterator[str]:
    dialect = dialect_of(server)
    for kind in (getattr(errors, name) for name in names):
        error: KhoError = kind()
        if dialect.is_jsonrpc_result:
            yield f"`{dialect.code(error)}` (HTTP {status_of(kind).value})"
        elif dialect.categories and kind not in dialect.numbers:
            yield f"`{error.code}` (HTTP {status_of(kind).value}, JSON-RPC by category)"
        else:
            yield f"`{error.code}` (HTTP {status_of(kind).value}, JSON-RPC {dialect.number(error)})"


def _fields(schema: dict[str, Any], definitions: dict[str, Any], path: str = "", depth: int = 0) -> Iterator[Any]:
    """Yield path, schema and whether it is required for each field, nested ones included."""
    schema = _resolve(schema, definitions)
    required = schema.get("required", [])
    for name, declared in schema.get("properties", {}).items():
        field = _resolve(declared, definitions)
        yield path + name, field, name in required
        inner = _resolve(field.get("items", field), definitions)
        if depth < _MAX_DEPTH:
            yield from _fields(inner, definitions, f"{path}{name}{'[]' if 'items' in field else ''}.", depth + 1)


def _resolve(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Replace a reference, and an optional type by its type."""
    declared = {key: value for key, value in schema.items() if key not in ("$ref", "anyOf")}
    if "$ref" in schema:
        return _resolve(definitions[schema["$ref"].rpartition("/")[2]], definitions) | declared
    choices = [each for each in schema.get("anyOf", []) if each.get("type") != "null"]
    if len(choices) == 1:
        return _resolve(choices[0], definitions) | declared
    return schema


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if schema.get("format") == "date-time":
        return "time (ISO 8601)"
    if schema.get("type") == "array":
        return f"array of {schema['items'].get('type', 'object')}s"
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    return str(schema.get("type", "any JSON"))


def _default(schema: dict[str, Any]) -> str:
    value = schema.get("default")
    return "" if value is None or isinstance(value, dict) else f"`{json.dumps(value)}`"


def _limits(schema: dict[str, Any]) -> str:
    parts = [
        _range(schema, "minimum", "maximum", ""),
        _range(schema, "minLength", "maxLength", " characters"),
        _range(schema, "minItems", "maxItems", " items"),
    ]
    if pattern := schema.get("pattern"):
        parts.append(PATTERNS[pattern])
    return "; ".join(filter(None, parts))


def _range(schema: dict[str, Any], lowest: str, highest: str, unit: str) -> str:
    low, high = schema.get(lowest), schema.get(highest)
    if high is None:
        return "" if low is None else f"from {low:,}{unit}"
    return f"up to {high:,}{unit}" if low is None else f"{low:,}-{high:,}{unit}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _example(function: str, params: dict[str, Any]) -> Iterator[str]:
    answer = ANSWERS / f"{function}.json"
    yield from ("", "Request:", "", "```json", _pretty(params), "```")
    if answer.exists():
        yield from ("", "Answer:", "", "```json", _pretty(json.loads(answer.read_text(encoding="utf-8"))), "```")


def _pretty(value: Any, indent: int = 0) -> str:
    """Write JSON with each object or array on one line if it fits."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= _WIDTH or not isinstance(value, (dict, list)):
        return line
    inside = " " * (indent + 2)
    if isinstance(value, list):
        parts, brackets = [_pretty(each, indent + 2) for each in value], "[]"
    else:
        names = ((f"{json.dumps(name, ensure_ascii=False)}: ", each) for name, each in value.items())
        parts, brackets = [name + _pretty(each, indent + 2) for name, each in names], "{}"
    joined = f",\n{inside}".join(parts)
    return f"{brackets[0]}\n{inside}{joined}\n{' ' * indent}{brackets[1]}"
