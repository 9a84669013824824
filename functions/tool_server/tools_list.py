"""tool-server/tools/list: list the available tools."""

from dataclasses import dataclass
from typing import Any

from api.handler import method
from shared.rpc.caller import Caller
from shared.rpc.method import Params
from tool_server import TOOLS


@dataclass(frozen=True, slots=True)
class ToolDescription:
    """A tool and its input schema."""

    name: str
    description: str
    inputSchema: dict[str, Any]  # noqa: N815 - MCP's own name


@dataclass(frozen=True, slots=True)
class ToolList:
    """The available tools."""

    tools: list[ToolDescription]


@method("tool-server/tools/list", role="reader")
def handler(_params: Params, _caller: Caller) -> ToolList:
    """List the available tools."""
    return ToolList([ToolDescription(**each) for each in TOOLS])
