"""What is made from the functions: the catalogue that doors read, and the README's table of methods."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from doors.direct import Handler
from shared.rpc.catalogue import FILE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from shared.rpc.method import Method

ROOT: Final = Path(__file__).resolve().parents[1]
README: Final = ROOT / "README.md"
SERVERS: Final = ("agent_data", "memory_server", "tool_server", "recall_kit", "research_agent", "device_server")
_BEGIN: Final = "<!-- methods: made by `make generate` -->"
_END: Final = "<!-- /methods -->"


def generate_all(*, write: bool) -> list[str]:
    """Make every file that is made; the names of those that were not what they should be."""
    made = {FILE: json.dumps(catalogue(), indent=1, ensure_ascii=False) + "\n", README: _readme()}
    stale = [file for file, text in made.items() if not file.exists() or file.read_text(encoding="utf-8") != text]
    if write:
        for file in stale:
            file.write_text(made[file], encoding="utf-8")
    return [str(file.relative_to(ROOT)) for file in stale]


def catalogue() -> dict[str, Any]:
    """The catalogue, from the functions themselves."""
    servers: list[dict[str, Any]] = []
    methods: list[dict[str, Any]] = []
    for package in _packages():
        servers.append(
            {
                "name": package.__name__.replace("_", "-"),
                "summary": _summary(package),
                **{kind: getattr(package, kind.upper(), []) for kind in ("tools", "resources", "prompts")},
            }
        )
        methods.extend(_entry(function, handler.method) for function, handler in handlers(package))
    return {"servers": servers, "methods": methods}


def handlers(package: ModuleType) -> Iterator[tuple[str, Handler[Any, Any]]]:
    """Each function of a server's package, and its handler."""
    for found in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{found.name}")
        handler = getattr(module, "handler", None)
        if isinstance(handler, Handler):
            yield f"{package.__name__}-{found.name}", handler


def _packages() -> Iterator[ModuleType]:
    for name in SERVERS:
        if (ROOT / "functions" / name).is_dir():
            yield importlib.import_module(name)


def _entry(function: str, method: Method[Any, Any]) -> dict[str, Any]:
    return {
        "name": method.name,
        "function": function,
        "summary": method.summary,
        "role": method.role,
        "params": method.params.model_json_schema(schema_generator=_Untitled),
        "result": method.result.json_schema(mode="serialization", schema_generator=_Untitled),
        "errors": list(method.errors),
        **({"anonymous": True} if method.anonymous else {}),
    }


class _Untitled(GenerateJsonSchema):
    """Schemas without the titles that pydantic derives from names."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False

    def generate(self, schema: Any, mode: JsonSchemaMode = "validation") -> dict[str, Any]:
        made = super().generate(schema, mode)
        for definition in (made, *made.get("$defs", {}).values()):
            definition.pop("title", None)
        return made


def _readme() -> str:
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n{_table()}{_END}{after}"


def _table() -> str:
    made = catalogue()
    rows = ["| method | needs | what it does |", "|---|---|---|"]
    rows += [
        f"| `{each['name']}` | {'nothing' if each.get('anonymous') else each['role']} | {each['summary']} |"
        for each in made["methods"]
    ]
    return "\n".join(rows) + "\n"


def _summary(module: ModuleType) -> str:
    return (inspect.getdoc(module) or "").partition(": ")[2]
