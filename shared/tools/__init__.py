"""Tools for chatbots. A new tool is a new module in this folder that defines `TOOL`."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from shared.rpc.errors import InvalidParams, NotFound
from shared.rpc.method import field_problems
from shared.rpc.strict_json import encodable

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.rpc.mcp_catalog import Effect


class ToolArguments(BaseModel):
    """Base class of all tool arguments: strict types, and unknown fields are ignored."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", hide_input_in_errors=True)


A = TypeVar("A", bound=ToolArguments)


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The result of a tool: text for a model, and the same as data."""

    text: str
    data: dict[str, Any]


@dataclass(frozen=True)
class ServerTool(Generic[A]):
    """A tool."""

    name: str
    description: str
    arguments: type[A]
    run: Callable[[A], ToolOutcome]
    title: str = ""
    effect: Effect = "reads"
    data: type = dict
    """The type of an outcome's data."""

    def described(self) -> dict[str, Any]:
        """Return the tool as it appears in lists."""
        return {"name": self.name, "description": self.description, "inputSchema": self._input_schema()}

    def _input_schema(self) -> dict[str, Any]:
        schema = self.arguments.model_json_schema()
        fields = {
            name: {key: value for key, value in field.items() if key != "title"}
            for name, field in schema["properties"].items()
        }
        return {"type": "object", "properties": fields, "required": schema.get("required", [])}

    def call(self, arguments: dict[str, Any]) -> ToolOutcome:
        """Validate the arguments and run the tool."""
        try:
            checked = self.arguments.model_validate(arguments)
        except ValidationError as error:
            raise InvalidParams(*field_problems(error, "arguments")) from None
        return self.run(checked)


@cache
def tools() -> dict[str, ServerTool[Any]]:
    """Return every tool by name."""
    modules = (importlib.import_module(f"{__name__}.{entry.name}") for entry in pkgutil.iter_modules(__path__))
    return {module.TOOL.name: module.TOOL for module in modules}


def tool(name: str) -> ServerTool[Any]:
    """Return the tool of this name. Raise `NotFound` if there is none."""
    try:
        return tools()[name]
    except KeyError:
        names = ", ".join(tools())
        raise NotFound(
            f"Unknown tool: {encodable(name)}", details={"name": name}, guidance=f"tools/list names the tools: {names}."
        ) from None
