"""tool-server/tools/list: the tools there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from api.handler import Caller, Params, method
from tool_server import TOOLS


@dataclass(frozen=True, slots=True)
class ToolDescription:
    """One tool, and what it takes."""

    name: str
    description: str
    inputSchema: dict[str, Any]  # noqa: N815 - MCP's own name


@dataclass(frozen=True, slots=True)
class ToolList:
    """Every tool."""

    tools: list[ToolDescription]


@method("tool-server/tools/list", role="reader")
def handler(_params: Params, _caller: Caller) -> ToolList:
    """List the available tools."""
    return ToolList([ToolDescription(**each) for each in TOOLS])
