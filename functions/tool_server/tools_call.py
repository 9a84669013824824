"""tool-server/tools/call: run one tool."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from api.deployment import WEB_SEARCH, lambda_function
from api.handler import method
from shared.rpc.caller import Caller
from shared.rpc.errors import NotFound, ToolFailed
from shared.rpc.method import OpenObject, Params
from shared.tools import tool


class CallServerTool(Params):
    """The name of a tool and its arguments."""

    name: Annotated[str, Field(min_length=1, max_length=128, examples=["duckduckgo_search"])]
    arguments: Annotated[OpenObject, Field(default_factory=dict)]


@dataclass(frozen=True, slots=True)
class TextContent:
    """Text for a model to read."""

    type: Literal["text"]
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallResult:
    """The result of a tool."""

    content: list[TextContent]
    structuredContent: dict[str, Any]  # noqa: N815 - MCP's own name


@lambda_function(WEB_SEARCH)
@method(
    "tool-server/tools/call",
    role="reader",
    errors=(NotFound, ToolFailed),
    example={"name": "duckduckgo_search", "arguments": {"query": "how to water ferns"}},
)
def handler(params: CallServerTool, _caller: Caller) -> ToolCallResult:
    """Run a tool."""
    outcome = tool(params.name).call(params.arguments)
    return ToolCallResult([TextContent("text", outcome.text)], outcome.data)
