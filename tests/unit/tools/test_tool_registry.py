"""Tools: adding one takes one file, and none costs anything before its first use."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

ECHO = '''
from shared.tools import ServerTool, ToolArguments, ToolOutcome


class Said(ToolArguments):
    """What to say again."""

    text: str


TOOL = ServerTool("echo", "Says it again.", Said, lambda said: ToolOutcome(said.text, {"length": len(said.text)}))
'''

ADDED = """
import json, sys
import shared.tools
shared.tools.__path__.append(sys.argv[1])
from infra.deploy.generate import catalogue
from tool_server import tools_call, tools_list
caller = {"sub": "s", "roles": ["reader"], "tenant_id": "t"}
def call(handler, params):
    return handler({"method": "", "params": params, "caller": caller, "correlation_id": "unit-test"}, None)
servers = {server["name"]: server for server in catalogue()["servers"]}
print(json.dumps({
    "capabilities": servers["tool-server"]["tools"],
    "listed": call(tools_list.handler, {}),
    "said": call(tools_call.handler, {"name": "echo", "arguments": {"text": "răng"}}),
    "refused": call(tools_call.handler, {"name": "echo", "arguments": {}}),
}))
"""

COLD = """
import json, sys
from tool_server import tools_call, tools_list
caller = {"sub": "s", "roles": ["reader"], "tenant_id": "t"}
call = {"method": "", "params": {"name": "duckduckgo_search"}, "caller": caller, "correlation_id": "unit-test"}
assert "error" in tools_call.handler(call, None)
print(json.dumps(sorted(sys.modules)))
"""


def run(program: str, *arguments: str) -> Any:
    """Run a program in its own process and return the last thing it prints."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        check=True,
        capture_output=True,
        text=True,
        env={"POWERTOOLS_METRICS_DISABLED": "true", "KHO_AUTH": "open"},
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_tools_are_discovered_by_file(tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(ECHO, encoding="utf-8")
    added = run(ADDED, str(tmp_path))
    listed = {each["name"]: each for each in added["listed"]["result"]["tools"]}
    assert set(listed) == {"duckduckgo_search", "echo"}
    assert listed["echo"] == {
        "name": "echo",
        "description": "Says it again.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    }
    assert added["capabilities"] == added["listed"]["result"]["tools"]
    assert added["said"] == {
        "result": {"content": [{"type": "text", "text": "răng"}], "structuredContent": {"length": 4}}
    }
    assert [each["field"] for each in added["refused"]["error"]["details"]] == ["arguments.text"]


def test_search_library_is_imported_lazily() -> None:
    imported = set(run(COLD))
    assert "pydantic" in imported
    assert not imported & {"ddgs", "primp", "lxml", "boto3", "botocore.client", "urllib3", "qdrant_client", "mcp"}
