"""Files written from the functions: the template, catalogues, sample events, tables of the documentation, alarms."""

from __future__ import annotations

import importlib
import inspect
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from api.handler import Handler
from api.openapi_schemas import inline_definitions
from api.tool_schemas import tool_schema
from infra.deploy import observability
from infra.deploy.field_descriptions import describe_fields
from infra.deploy.function_resources import SERVERS, declared_functions, template
from infra.deploy.reference import PAGES, ROOT, method_sections
from infra.deploy.sample_events import FOLDER, sample_event
from infra.local import methods as local_methods
from infra.local import template as local_template
from shared.rpc import mcp_catalog
from shared.rpc.catalogue import FILE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

    from shared.rpc.method import Method
    from shared.tools import ServerTool

METHODS: Final = PAGES / "README.md"
DEPLOYING: Final = ROOT / "docs" / "deploying.md"


def generate_all(*, write: bool) -> list[str]:
    """Compute every generated file. Return the names of those that were stale; `write` brings them up to date."""
    text = template()
    deployed = local_template.parse(text)
    made = {
        local_template.FILE: text,
        FILE: _json(catalogue()),
        local_methods.FILE: _json(_local_entries()),
        mcp_catalog.FILE: _json(build_mcp_catalog()),
        METHODS: _with_table(METHODS, "methods", _methods()),
        **{page: _with_table(page, "methods", lines) for page, lines in reference_sections().items()},
        DEPLOYING: _with_table(DEPLOYING, "parameters", _parameters(text)),
        observability.FILE: observability.observability(deployed),
        observability.LOGS_FILE: observability.logs(deployed),
        **{FOLDER / f"{name}.json": sample_event(handler) for name, handler in _all_handlers().items()},
    }
    stale = [file for file, text in made.items() if not file.exists() or file.read_text(encoding="utf-8") != text]
    if write:
        for file in stale:
            file.write_text(made[file], encoding="utf-8")
    return [str(file.relative_to(ROOT)) for file in stale]


def reference_sections() -> dict[Path, list[str]]:
    """Return the generated lines of each server's reference page."""
    examples = {name: handler.example for name, handler in _all_handlers().items()}
    return method_sections(catalogue(), build_mcp_catalog(), examples)


def _all_handlers() -> dict[str, Handler[Any, Any]]:
    return {name: handler for package in _packages() for name, handler in handlers(package)}


def catalogue() -> dict[str, Any]:
    """Build the catalogue from the functions."""
    servers: list[dict[str, Any]] = []
    methods: list[dict[str, Any]] = []
    for package in _packages():
        servers.append(
            {
                "name": _named(package),
                "summary": (inspect.getdoc(package) or "").partition(": ")[2],
                "tools": package.TOOLS if hasattr(package, "TOOLS") else _tools_of(package),
                **{kind: getattr(package, kind.upper(), []) for kind in ("resources", "prompts")},
            }
        )
        methods.extend(_entry(function, handler.method) for function, handler in handlers(package))
    return {"servers": servers, "methods": methods}


def _local_entries() -> list[dict[str, Any]]:
    """Build the catalogue of the methods of one machine. The server's package has the same name as in a function's."""
    return [
        _entry(f"{_server_of(function.handler)}-{function.module}", function.handler.method)
        for function in declared_functions(local_methods.__name__)
    ]


def _server_of(handler: Handler[Any, Any]) -> str:
    return handler.method.name.partition("/")[0].replace("-", "_")


def _tools_of(package: ModuleType) -> list[dict[str, Any]]:
    """List the methods that are tools, as a server's capabilities show them."""
    methods = [handler.method for _, handler in handlers(package) if handler.method.tool]
    return [
        {name: _tool(method)["described"][name] for name in ("name", "description")}
        | {"inputSchema": _params_schema(method)}
        for method in methods
    ]


def build_mcp_catalog() -> dict[str, Any]:
    """Build the tools, resources and prompts for MCP clients from the functions."""
    tools: list[dict[str, Any]] = []
    resources: list[dict[str, Any]] = []
    prompts: list[dict[str, Any]] = []
    for package in _packages():
        tools += [_tool(handler.method) for _, handler in handlers(package) if handler.method.tool]
        tools += [_tool_by_name(package, tool) for tool in getattr(package, "MCP_TOOLS", [])]
        resources += [asdict(each) for each in getattr(package, "MCP_RESOURCES", [])]
        prompts += [asdict(each) | {"server": _named(package)} for each in getattr(package, "MCP_PROMPTS", [])]
    for kind in (tools, prompts):
        names = [each.get("name") or each["described"]["name"] for each in kind]
        taken = {name for name in names if names.count(name) > 1}
        if taken:
            raise ValueError(f"MCP clients would be offered twice: {', '.join(sorted(taken))}")
    return {"tools": tools, "resources": resources, "prompts": prompts}


def _tool(method: Method[Any, Any]) -> dict[str, Any]:
    tool = method.tool
    assert tool
    return {
        "described": {
            # Models' interfaces take no other characters than these in a tool's name.
            "name": tool.name or method.name.partition("/")[2].replace("/", "_"),
            "title": tool.title,
            "description": tool.description,
            "annotations": mcp_catalog.tool_annotations(tool.effect, open_world=tool.open_world),
            "inputSchema": tool_schema(_params_schema(method), tool.defaults, tool.hidden),
        },
        "method": method.name,
        **({"defaults": tool.defaults} if tool.defaults else {}),
        **({"returns_content": True} if tool.returns_content else {}),
    }


def _tool_by_name(package: ModuleType, tool: ServerTool[Any]) -> dict[str, Any]:
    """Describe a tool that its server runs by name."""
    caller = next(each.method for _, each in handlers(package) if each.method.name.endswith("/tools/call"))
    described = tool.described() | {
        "title": tool.title or tool.name,
        "annotations": mcp_catalog.tool_annotations(tool.effect, open_world=True),
    }
    return {"described": described, "method": caller.name, "by_name": True}


def handlers(package: ModuleType) -> Iterator[tuple[str, Handler[Any, Any]]]:
    """Yield each method of a server's package: its function's name and its handler."""
    for function in declared_functions(package.__name__):
        if isinstance(function.handler, Handler):
            yield function.name, function.handler


def _named(package: ModuleType) -> str:
    return package.__name__.replace("_", "-")


def _packages() -> Iterator[ModuleType]:
    return map(importlib.import_module, SERVERS)


def _entry(function: str, method: Method[Any, Any]) -> dict[str, Any]:
    return {
        "name": method.name,
        "function": function,
        "summary": method.summary,
        "role": method.role,
        "params": _params_schema(method),
        "result": inline_definitions(method.result.json_schema(mode="serialization", schema_generator=_Untitled)),
        "errors": [error.__name__ for error in method.errors],
        **({"anonymous": True} if method.anonymous else {}),
    }


def _params_schema(method: Method[Any, Any]) -> dict[str, Any]:
    schema = inline_definitions(method.params.model_json_schema(schema_generator=_Untitled))
    describe_fields(method.name.partition("/")[0], schema)
    return schema


class _Untitled(GenerateJsonSchema):
    """Schemas without the titles that pydantic derives from names."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False

    def generate(self, schema: Any, mode: JsonSchemaMode = "validation") -> dict[str, Any]:
        made = super().generate(schema, mode)
        for definition in (made, *made.get("$defs", {}).values()):
            definition.pop("title", None)
        return made


def _with_table(file: Path, name: str, table: list[str]) -> str:
    """Return a page with its current table of this name."""
    begin, end = f"<!-- {name}: made by `make generate` -->", f"<!-- /{name} -->"
    before, _, rest = file.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    return "\n".join([before + begin, *table, end + after])


def _methods() -> list[str]:
    rows = ["| method | needs | what it does |", "|---|---|---|"]
    return rows + [
        f"| `{each['name']}` | {'nothing' if each.get('anonymous') else each['role']} | {each['summary']} |"
        for each in catalogue()["methods"]
    ]


def _parameters(text: str) -> list[str]:
    rows = ["| parameter | default | |", "|---|---|---|"]
    for name, each in local_template.document(text)["Parameters"].items():
        choices = f" One of {', '.join(map(str, each['AllowedValues']))}." if "AllowedValues" in each else ""
        default = "" if each.get("Default", "") == "" else f"`{each['Default']}`"
        rows.append(f"| `{name}` | {default} | {each['Description'].rstrip('.')}.{choices} |")
    return rows


def _json(made: Any) -> str:
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"
