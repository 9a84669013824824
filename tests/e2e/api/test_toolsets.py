"""Toolsets: `/mcp/{toolset}` by third-party clients."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from fastmcp import Client as FastClient
from mcp.client import Client as SdkClient
from mcp.shared.exceptions import MCPError

from shared.rpc.mcp_catalog import TOOLSETS, mcp_catalog
from tests.helpers.api_client import make_key
from tests.helpers.mcp_events import initialize_event

if TYPE_CHECKING:
    from tests.helpers.kho_server import KhoServer

CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "documents": ("list_children", {}),
    "memory": ("memory_get_or_create", {"conversation_id": "toolset"}),
    "knowledge": ("manage_collections", {"action": "list"}),
    "experiences": ("query_experiences", {"keywords": "react"}),
    "devices": ("devices_list", {}),
    "search": ("search", {"query": "ferns"}),
}


@pytest.mark.parametrize("toolset", TOOLSETS)
def test_clients_use_a_toolset(server: KhoServer, toolset: str) -> None:
    catalog = mcp_catalog().of(*TOOLSETS[toolset].methods)
    address, (tool, arguments) = f"{server.address}/mcp/{toolset}", CALLS[toolset]

    async def use() -> None:
        async with SdkClient(address) as sdk, FastClient(address) as fast:
            for tools in ((await sdk.list_tools()).tools, await fast.list_tools()):
                assert {each.name for each in tools} == {each.name for each in catalog.tools}
            assert (await sdk.call_tool(tool, arguments)).structured_content
            assert (await fast.call_tool(tool, arguments)).structured_content
            prompts = {each.name for each in await fast.list_prompts()}
            assert prompts == {each.name for each in catalog.prompts}
            templates = {each.uri_template for each in (await sdk.list_resource_templates()).resource_templates}
            assert templates == {each.uri for each in catalog.resources if each.is_template}

    asyncio.run(use())


def test_tool_of_another_toolset_is_unknown(server: KhoServer) -> None:
    async def call() -> Any:
        async with SdkClient(f"{server.address}/mcp/memory") as client:
            with pytest.raises(MCPError) as refused:
                await client.call_tool("create_document", {})
            return refused.value.data

    assert "'create_document' is not a tool" in json.dumps(asyncio.run(call()))


def test_unknown_toolset_is_not_found(server: KhoServer) -> None:
    message = initialize_event("2025-11-25")["body"].encode()
    refused = server.post("/mcp/everything", message, accept="application/json, text/event-stream")
    assert refused.status == 404
    error = json.loads(refused.data)["error"]
    assert error["details"] == {"toolset": "everything"}
    assert all(name in error["guidance"] for name in TOOLSETS)


def test_toolset_requires_credentials(guarded: KhoServer) -> None:
    message = initialize_event("2025-11-25")["body"].encode()
    accept = "application/json, text/event-stream"
    assert guarded.post("/mcp/memory", message, accept=accept).status == 401
    key = make_key(guarded.data, "toolsets", "reader")["key"]
    assert guarded.post("/mcp/memory", message, accept=accept, authorization=f"Bearer {key}").status == 200
