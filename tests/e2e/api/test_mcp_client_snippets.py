"""The client settings of docs/reference/mcp-clients.md, parsed as the clients parse them and tried."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

from tests.helpers.api_client import make_key

if TYPE_CHECKING:
    from tests.helpers.kho_server import KhoServer

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "mcp-clients.md"
TEXT, _, _ = PAGE.read_text(encoding="utf-8").partition("\n## The research agent over STDIO\n")
_KEY = re.compile(r"\$\{[^}]*\}|\$KHO_KEY")


def configured() -> list[tuple[str, str | None]]:
    """Return the address of each snippet, and its Authorization header if it has one."""
    snippets = []
    for language, snippet in re.findall(r"```(json|toml|sh)\n(.*?)```", TEXT, re.DOTALL):
        if language == "sh":
            snippets += [_of_command(shlex.split(line)) for line in snippet.splitlines()]
        else:
            read: dict[str, Any] = json.loads(snippet) if language == "json" else tomllib.loads(snippet)
            (servers,) = (read[name] for name in ("mcpServers", "servers", "mcp_servers") if name in read)
            snippets.append(_of_settings(servers["kho"]))
    return snippets


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
    assert len(snippets) == 10
    for address, authorization in snippets:
        if authorization is None:
            assert address == "http://localhost:8001/mcp"
            assert asyncio.run(listed(f"{server.address}/mcp", {}))
        else:
            assert address == "https://kho.example/mcp"
            headers = {"Authorization": _KEY.sub(key, authorization)}
            assert headers["Authorization"] == f"Bearer {key}"
            assert asyncio.run(listed(f"{guarded.address}/mcp", headers))
