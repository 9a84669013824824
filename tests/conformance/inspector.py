"""The public Inspector's command line, listing and calling."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def run(node: Path, modules: Path, url: str) -> None:
    """List and call over HTTP; a failure raises."""

    def ask(method: str, *arguments: str) -> Any:
        command = [str(node), str(_entry(modules)), "--cli", url, "--transport", "http", "--method", method, *arguments]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr + done.stdout
        return json.loads(done.stdout)

    print("\n=== Inspector", flush=True)
    names = {tool["name"] for tool in ask("tools/list")["tools"]}
    assert {"memory_add_message", "duckduckgo_search"} <= names
    said = ask(
        "tools/call", "--tool-name", "memory_add_message", "--tool-arg", "conversation_id=inspected",
        "--tool-arg", "role=user", "--tool-arg", "content=xin chào",
    )  # fmt: skip
    assert said["structuredContent"] == {"status": "success", "conversation_id": "inspected"}
    uris = [each["uri"] for each in ask("resources/list")["resources"]]
    assert "memory://conversation/inspected" in uris
    read = ask("resources/read", "--uri", "memory://conversation/inspected")
    assert "xin chào" in json.dumps(read, ensure_ascii=False)
    assert "summarize_conversation" in {each["name"] for each in ask("prompts/list")["prompts"]}
    print(f"listed {len(names)} tools, called one, read a resource, listed prompts")


def _entry(modules: Path) -> Path:
    package = modules / "@modelcontextprotocol" / "inspector"
    bins = json.loads((package / "package.json").read_text())["bin"]
    return package / str(next(iter(bins.values())))
