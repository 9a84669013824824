"""tool-server/tools/list: the tools there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from doors.direct import Caller, Params, method
from tool_server import TOOLS


@dataclass(frozen=True, slots=True)
class ToolDescription:
    """One tool, and what it takes."""

    name: str
    description: str
    inputSchema: dict[str, Any]  # noqa: N815 - MCP's own name


@dataclass(frozen=True, slots=True)
class Tools:
    """Every tool."""

    tools: list[ToolDescription]


@method("tool-server/tools/list", role="reader")
def handler(_params: Params, _caller: Caller) -> Tools:
    """List the available tools."""
    return Tools([ToolDescription(**each) for each in TOOLS])
