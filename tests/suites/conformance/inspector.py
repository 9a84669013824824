"""The public Inspector's command line, listing and calling: over HTTP at `kho serve`, over STDIO as an editor does."""

from __future__ import annotations

import json
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from infra.local.iot.simulator.fleet import Fleet
from shared.rpc.mcp_catalog import TOOLSETS, mcp_catalog
from tests.e2e.api.test_toolsets import CALLS
from tests.e2e.devices.test_broker import mqtt_port
from tests.helpers.kho_server import KhoServer
from tests.suites.conformance.tools import inspect

if TYPE_CHECKING:
    from collections.abc import Callable

    Ask = Callable[..., Any]

RESEARCH_AGENT: Final = str(Path(sys.executable).with_name("research-agent"))
KHO: Final = str(Path(sys.executable).with_name("kho"))


def run() -> None:
    """List and call at each endpoint; a failure raises."""

    def asking(*target: str) -> Ask:
        return partial(inspect, target)

    print("\n=== Inspector", flush=True)
    with tempfile.TemporaryDirectory(prefix="kho-inspected-") as folder:
        data = Path(folder) / "data"
        with KhoServer(data) as server:

            def at(path: str) -> Ask:
                return asking(server.address + path, "--transport", "http")

            _at_the_door(at("/mcp"))
            _at_recall_kit(at("/mcp/recall-kit"))
            for name in TOOLSETS:
                _at_toolset(name, f"/mcp/{name}", at(f"/mcp/{name}"))
                over_stdio = asking(KHO, "mcp", "-e", f"KHO_DATA={data}", "-e", f"KHO_TOOLSET={name}")
                _at_toolset(name, f"kho mcp --toolset {name}", over_stdio)
            with Fleet("127.0.0.1", mqtt_port(server), ["inspected"]) as fleet:
                fleet.start()
                _at_a_device(at("/mcp/devices/inspected"))
        _over_stdio(asking(RESEARCH_AGENT, "mcp", "-e", f"KHO_DATA={data}"))


def _at_the_door(ask: Ask) -> None:
    names = {tool["name"] for tool in ask("tools/list")["tools"]}
    assert {"memory_add_message", "duckduckgo_search"} <= names
    response = ask("tools/call", "--tool-name", "memory_add_message", "--tool-arg", "conversation_id=inspected",
               "--tool-arg", "role=user", "--tool-arg", "content=xin chào")  # fmt: skip
    assert response["structuredContent"] == {"status": "success", "conversation_id": "inspected"}
    uris = [each["uri"] for each in ask("resources/list")["resources"]]
    assert "memory://conversation/inspected" in uris
    read = ask("resources/read", "--uri", "memory://conversation/inspected")
    assert "xin chào" in json.dumps(read, ensure_ascii=False)
    assert "summarize_conversation" in {each["name"] for each in ask("prompts/list")["prompts"]}
    print(f"/mcp: listed {len(names)} tools, called one, read a resource, listed prompts")


def _at_recall_kit(ask: Ask) -> None:
    names = {tool["name"] for tool in ask("tools/list")["tools"]}
    response = ask("tools/call", "--tool-name", "query_experiences", "--tool-arg", "keywords=react")
    assert response["structuredContent"]["success"] is True
    print(f"/mcp/recall-kit: listed {len(names)} tools, called one")


def _at_toolset(name: str, place: str, ask: Ask) -> None:
    names = {tool["name"] for tool in ask("tools/list")["tools"]}
    assert names == {each.name for each in mcp_catalog().of(*TOOLSETS[name].methods).tools}
    tool, arguments = CALLS[name]
    given = [each for key, value in arguments.items() for each in ("--tool-arg", f"{key}={value}")]
    assert not ask("tools/call", "--tool-name", tool, *given).get("isError")
    print(f"{place}: listed {len(names)} tools, called {tool}")


def _at_a_device(ask: Ask) -> None:
    named = {tool["title"]: tool["name"] for tool in ask("tools/list")["tools"]}
    volume = named["self.audio_speaker.set_volume"]
    turned = ask("tools/call", "--tool-name", volume, "--tool-arg", "volume=40")
    assert turned["content"] == [{"type": "text", "text": "true"}]
    print(f"/mcp/devices/inspected: listed {len(named)} tools, called one")


def _over_stdio(ask: Ask) -> None:
    names = {tool["name"] for tool in ask("tools/list")["tools"]}
    response = ask("tools/call", "--tool-name", "manage_collections", "--tool-arg", "action=create",
               "--tool-arg", "collection_name=inspected")  # fmt: skip
    assert response["structuredContent"]["collection"]["name"] == "inspected"
    print(f"research-agent mcp: listed {len(names)} tools, called one")
