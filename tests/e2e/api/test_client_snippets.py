"""The client settings and links of the documentation, parsed as the clients parse them and tried."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

from infra.clients.agent import cli as research_agent
from infra.clients.cli import main as kho
from shared.platform.version import VERSION
from tests.helpers.api_client import make_key

if TYPE_CHECKING:
    from tests.helpers.kho_server import KhoServer

ROOT = Path(__file__).parents[3]
TEXT, _, COMMANDS = (
    (ROOT / "docs" / "clients.md").read_text(encoding="utf-8").partition("\n## Clients that start a command\n")
)
README = (ROOT / "README.md").read_text(encoding="utf-8")
INSTALLING = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
_KEY = re.compile(r"\$\{[^}]*\}|\$KHO_KEY")


def configured() -> list[tuple[str, str | None]]:
    """Return the address of each snippet, and its Authorization header if it has one."""
    snippets = []
    for language, snippet in _snippets(README + TEXT):
        if language == "sh":
            snippets += [_of_command(shlex.split(line)) for line in snippet.splitlines() if " mcp add " in line]
        else:
            snippets.append(_of_settings(_server(language, snippet)))
    return snippets


def _snippets(text: str) -> list[tuple[str, str]]:
    return re.findall(r"```(json|toml|sh)\n(.*?)```", text, re.DOTALL)


def _server(language: str, snippet: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(snippet) if language == "json" else tomllib.loads(snippet)
    (servers,) = (read[name] for name in ("mcpServers", "servers", "mcp_servers") if name in read)
    (settings,) = servers.values()
    return dict(settings)


def _of_settings(settings: dict[str, Any]) -> tuple[str, str | None]:
    if "bearer_token_env_var" in settings:
        return settings["url"], f"Bearer ${{{settings['bearer_token_env_var']}}}"
    return settings["url"], settings.get("headers", {}).get("Authorization")


def _of_command(words: list[str]) -> tuple[str, str | None]:
    assert words[:6] == ["claude", "mcp", "add", "--transport", "http", "kho"]
    header = words[words.index("--header") + 1] if "--header" in words else None
    return words[6], header.removeprefix("Authorization: ") if header else None


def test_each_client_snippet_connects_with_and_without_a_key(server: KhoServer, guarded: KhoServer) -> None:
    key = make_key(guarded.data, "docs", "reader")["key"]

    async def listed(address: str, headers: dict[str, str]) -> int:
        async with Client(StreamableHttpTransport(address, headers=headers)) as client:
            return len(await client.list_tools())

    snippets = configured()
    assert len(snippets) == 11
    for address, authorization in snippets:
        if authorization is None:
            assert address == "http://localhost:8001/mcp"
            assert asyncio.run(listed(f"{server.address}/mcp", {}))
        else:
            assert address == "https://kho.example/mcp"
            headers = {"Authorization": _KEY.sub(key, authorization)}
            assert headers["Authorization"] == f"Bearer {key}"
            assert asyncio.run(listed(f"{guarded.address}/mcp", headers))


def test_each_command_is_one_of_ours_with_options_that_it_has() -> None:
    commands = [_server(language, snippet) for language, snippet in _snippets(COMMANDS)]
    assert len(commands) == 4
    for each in commands:
        command, _, name = each["command"].rpartition("/")
        assert command == "/path/to/kho/.venv/bin"
        assert parsed(name, each["args"])


def test_the_wheels_command_is_one_of_ours() -> None:
    ((language, snippet),) = ((language, text) for language, text in _snippets(INSTALLING) if language == "json")
    settings = _server(language, snippet)
    assert (settings["command"], settings["args"][0]) == ("uvx", "--from")
    _, wheel, name, *arguments = settings["args"]
    assert wheel.endswith(f"/kho-{VERSION}-py3-none-any.whl")
    assert parsed(name, arguments) == {}


def parsed(name: str, arguments: list[str]) -> dict[str, Any]:
    """Return the options of a command that serves MCP over STDIO."""
    app = {"kho": kho.app, "research-agent": research_agent.app}[name]
    called, bound, ignored = app.parse_args(arguments, exit_on_error=False, print_error=False)
    assert (called.__name__, ignored) == ("mcp", {})
    return dict(bound.arguments)


def test_install_links_lead_to_the_local_server() -> None:
    (cursor,) = re.findall(r"\((https://cursor\.com/install-mcp\?[^)]+)\)", TEXT)
    query = parse_qs(urlsplit(cursor).query)
    assert query["name"] == ["kho"]
    assert json.loads(base64.b64decode(query["config"][0])) == {"url": "http://localhost:8001/mcp"}
    (vscode,) = re.findall(r"\((https://insiders\.vscode\.dev/redirect\?[^)]+)\)", TEXT)
    (target,) = parse_qs(urlsplit(vscode).query)["url"]
    scheme, _, settings = target.partition("?")
    assert scheme == "vscode:mcp/install"
    assert json.loads(unquote(settings)) == {"name": "kho", "type": "http", "url": "http://localhost:8001/mcp"}
