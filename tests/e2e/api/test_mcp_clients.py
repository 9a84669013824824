"""Third-party MCP clients against `kho serve`."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import urllib3
from fastmcp import Client as FastClient
from fastmcp.client.transports import StreamableHttpTransport
from mcp.client import Client as SdkClient
from mcp.client.streamable_http import streamable_http_client

from shared.rpc.mcp_catalog import mcp_catalog
from tests.helpers.api_client import make_key
from tests.helpers.mcp_events import MODERN, initialize_event

if TYPE_CHECKING:
    from tests.helpers.kho_server import KhoServer

TOOLS = {each.name for each in mcp_catalog().tools}
INITIALIZE = initialize_event("2025-11-25")["body"].encode()


@pytest.mark.parametrize("mode", ["auto", "legacy", MODERN])
def test_mcp_sdk_client(server: KhoServer, mode: str) -> None:
    async def use() -> None:
        async with SdkClient(f"{server.address}/mcp", mode=mode) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
            message: dict[str, Any] = {"conversation_id": f"sdk-{mode}", "role": "user", "content": "xin chào"}
            added = await client.call_tool("memory_add_message", message)
            assert added.structured_content == {"status": "success", "conversation_id": f"sdk-{mode}"}
            read = await client.read_resource(f"memory://conversation/sdk-{mode}")
            assert "xin chào" in read.contents[0].text  # type: ignore[union-attr] # conversations are text resources
            prompt = await client.get_prompt("summarize_conversation", {"conversation_id": f"sdk-{mode}"})
            assert len(prompt.messages) == 2
            failed = await client.call_tool("memory_get_context", {"conversation_id": "nowhere"})
            assert failed.is_error
            assert (failed.structured_content["code"], failed.structured_content["number"]) == ("NOT_FOUND", -32001)

    asyncio.run(use())


def test_fastmcp_client(server: KhoServer) -> None:
    async def use() -> None:
        async with FastClient(f"{server.address}/mcp") as client:
            assert {tool.name for tool in await client.list_tools()} == TOOLS
            conversation = await client.call_tool("memory_get_or_create", {"conversation_id": "fast"})
            assert conversation.structured_content == {"conversation_id": "fast"}
            assert "memory://conversation/fast" in {str(each.uri) for each in await client.list_resources()}
            assert "summarize_conversation" in {each.name for each in await client.list_prompts()}

    asyncio.run(use())


def test_listed_tools_depend_on_role(guarded: KhoServer) -> None:
    async def names(role: str) -> set[str]:
        key = make_key(guarded.data, "tools", role)["key"]
        async with httpx2.AsyncClient(headers={"authorization": f"Bearer {key}"}) as http:
            transport = streamable_http_client(f"{guarded.address}/mcp", http_client=http)
            async with SdkClient(transport) as client:
                return {tool.name for tool in (await client.list_tools()).tools}

    assert asyncio.run(names("operator")) == TOOLS
    for role, allowed in (("writer", {"reader", "writer"}), ("reader", {"reader"})):
        assert asyncio.run(names(role)) == {
            each.name for each in mcp_catalog().tools if each.anonymous or each.role in allowed
        }


def test_client_needs_only_an_api_key(guarded: KhoServer) -> None:
    key = make_key(guarded.data, "with-key", "writer")["key"]

    async def use() -> None:
        transport = StreamableHttpTransport(f"{guarded.address}/mcp", headers={"Authorization": f"Bearer {key}"})
        async with FastClient(transport) as client:
            await client.call_tool("memory_add_message", {"conversation_id": "c", "role": "user", "content": "x"})
            context = await client.call_tool("memory_get_context", {"conversation_id": "c"})
            assert context.structured_content == {"messages": [{"role": "user", "content": "x"}]}

    asyncio.run(use())


def test_unauthenticated_client_gets_oauth_metadata(guarded: KhoServer, server: KhoServer) -> None:
    where = "/.well-known/oauth-protected-resource"
    refused = guarded.post("/mcp", INITIALIZE, accept="application/json, text/event-stream")
    assert refused.status == 401
    assert refused.headers["www-authenticate"] == f'Bearer resource_metadata="{guarded.address}{where}/mcp"'
    wrong = guarded.post("/mcp", INITIALIZE, authorization="Bearer kho_wrong")
    assert wrong.status == 401
    assert 'error="invalid_token"' in wrong.headers["www-authenticate"]
    for resource in ("", "/mcp"):
        path = where + resource
        metadata = json.loads(guarded.get(path).data)
        assert metadata["resource"] == guarded.address + resource
        assert metadata["bearer_methods_supported"] == ["header"]
        assert len(metadata["authorization_servers"]) == 1
        assert server.get(path).status == 404
    for method in ("GET", "DELETE"):
        assert guarded.http.request(method, f"{guarded.address}/mcp").status == 405


def test_mcp_endpoint_isolates_tenants(guarded: KhoServer) -> None:
    ours, theirs = (make_key(guarded.data, tenant, "writer")["key"] for tenant in ("mcp-ours", "mcp-theirs"))

    async def listed(key: str) -> list[str]:
        transport = StreamableHttpTransport(f"{guarded.address}/mcp", headers={"Authorization": f"Bearer {key}"})
        async with FastClient(transport) as client:
            if key == ours:
                await client.call_tool("memory_get_or_create", {"conversation_id": "secret"})
            return [str(each.uri) for each in await client.list_resources()]

    assert "memory://conversation/secret" in asyncio.run(listed(ours))
    assert not [uri for uri in asyncio.run(listed(theirs)) if uri.startswith("memory://")]


@pytest.mark.parametrize("path", ["/mcp", "/mcp/memory", "/mcp/recall-kit"])
def test_other_verbs_are_told_the_one_that_is_taken(server: KhoServer, path: str) -> None:
    for verb in ("OPTIONS", "PUT", "GET", "DELETE"):
        answer = urllib3.request(verb, f"{server.address}{path}")
        assert (answer.status, answer.headers["allow"]) == (405, "POST"), verb
