"""A short start of the MCP endpoints: a function loads what it uses of the SDK, and builds models at first use."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Final

from infra.local.template import FILE

FUNCTIONS: Final = FILE.parent / "functions"
PROGRAM: Final = """
import gc, sys
from api import mcp_sdk
from pydantic import BaseModel
import mcp_types
from mcp_types import _v2025_11_25, _v2026_07_28

assert not {"mcp.client", "mcp.server.mcpserver", "httpx2"} & sys.modules.keys(), "the client is loaded"
for module in (mcp_types, _v2025_11_25, _v2026_07_28):
    assert not module.CallToolResult.__pydantic_complete__, "models are built at the start"
assert mcp_types.CallToolResult(content=[]).model_dump()["content"] == []
assert gc.isenabled()
assert gc.get_freeze_count()


class Later(BaseModel):
    number: int


assert Later.__pydantic_complete__, "Kho's own models are built at their first use"

import mcp, mcp.server
assert mcp.server is sys.modules["mcp.server"]
assert mcp.server.lowlevel.Server is mcp_sdk.Server
assert "mcp.server.mcpserver" not in sys.modules
assert mcp.server.MCPServer
assert mcp.ClientSession
from mcp import Client, types
assert types.CallToolResult is mcp_types.CallToolResult
"""


def test_an_endpoint_loads_no_client_and_builds_no_model_before_its_first_use() -> None:
    command = [sys.executable, "-c", PROGRAM]
    subprocess.run(command, check=True, cwd=FUNCTIONS, env={"PYTHONPATH": str(FILE.parent)})


def test_functions_import_the_sdk_by_one_module() -> None:
    direct = re.compile(r"^\s*(?:from|import) mcp(?:_types)?\b", re.MULTILINE)
    modules = {file.name for file in FUNCTIONS.rglob("*.py") if direct.search(file.read_text(encoding="utf-8"))}
    assert modules == {"mcp_sdk.py"}
