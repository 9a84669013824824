"""`/mcp/devices/{device_id}`: third-party MCP clients list and call a device's own tools."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from fastmcp import Client as FastClient
from fastmcp.client.transports import StreamableHttpTransport
from mcp.client import Client as SdkClient
from mcp.shared.exceptions import MCPError

from infra.local.iot.simulator.device import DeviceModel
from infra.local.iot.simulator.fleet import Fleet
from infra.local.iot.simulator.quirks import FIRMWARE, Quirk
from tests.e2e.devices.test_broker import mqtt_port
from tests.helpers.api_client import make_key, run_kho
from tests.helpers.mcp_events import MODERN, initialize_event

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from tests.helpers.kho_server import KhoServer

INITIALIZE = initialize_event("2025-11-25")["body"].encode()


def device(server: KhoServer, device_id: str, *quirks: Quirk) -> AbstractContextManager[Fleet]:
    return Fleet("127.0.0.1", mqtt_port(server), [device_id], DeviceModel(quirks=FIRMWARE | set(quirks)))


@pytest.fixture
def lamp(server: KhoServer) -> Iterator[str]:
    """Yield a connected device. Two of its tool names collide in clients that allow no dots."""
    device_id = f"lamp-{uuid4().hex[:8]}"
    with device(server, device_id, Quirk.COLLIDING_NAMES) as fleet:
        fleet.start()
        yield f"{server.address}/mcp/devices/{device_id}"


@pytest.mark.parametrize("mode", ["auto", "legacy", MODERN])
def test_mcp_sdk_client_uses_a_device(lamp: str, mode: str) -> None:
    async def use() -> None:
        async with SdkClient(lamp, mode=mode) as client:
            tools = {tool.title: tool for tool in (await client.list_tools()).tools}
            volume = tools["self.audio_speaker.set_volume"]
            assert volume.name == "self_audio_speaker_set_volume"
            assert volume.input_schema["properties"]["volume"]["maximum"] == 100
            assert len({tool.name for tool in tools.values()}) == len(tools)
            turned = await client.call_tool(volume.name, {"volume": 50})
            assert [(part.type, part.text) for part in turned.content] == [("text", "true")]  # type: ignore[union-attr]
            failed = await client.call_tool(volume.name, {"volume": 101})
            assert failed.is_error
            assert failed.structured_content["details"][0]["field"] == "arguments.volume"
            assert "arguments.volume: " in failed.content[0].text  # type: ignore[union-attr] # an error is text

    asyncio.run(use())


def test_image_result_is_mcp_image_content(lamp: str) -> None:
    async def use() -> None:
        async with FastClient(lamp) as client:
            named = {tool.title: tool.name for tool in await client.list_tools()}
            result = await client.call_tool(named["self.camera.take_photo"], {"question": "what is this?"})
            (image,) = result.content
            assert image.type == "image"
            assert image.mime_type.startswith("image/")

    asyncio.run(use())


def test_unknown_device_is_rejected_immediately(server: KhoServer) -> None:
    unknown = server.post("/mcp/devices/missing", INITIALIZE, accept="application/json, text/event-stream")
    error = json.loads(unknown.data)["error"]
    assert (error["code"], error["data"]["code"]) == (404, "NOT_FOUND")
    for method in ("GET", "DELETE"):
        assert server.http.request(method, f"{server.address}/mcp/devices/missing").status == 405


def test_device_requires_its_tenant_and_writer_role(guarded: KhoServer) -> None:
    device_id = f"lamp-{uuid4().hex[:8]}"
    registration = run_kho("devices", "register", device_id, "--tenant", "house", "--data", str(guarded.data), "--json")
    assert registration.returncode == 0, registration.stderr
    keys = {role: make_key(guarded.data, "house", role)["key"] for role in ("reader", "operator")}
    keys["stranger"] = make_key(guarded.data, "elsewhere", "admin")["key"]
    url = f"{guarded.address}/mcp/devices/{device_id}"

    async def names(who: str) -> list[str]:
        async with FastClient(StreamableHttpTransport(url, headers={"Authorization": f"Bearer {keys[who]}"})) as client:
            return [tool.name for tool in await client.list_tools()]

    registered: dict[str, Any] = json.loads(registration.stdout)
    with Fleet("127.0.0.1", mqtt_port(guarded), [device_id], signed_in(registered)) as fleet:
        fleet.start()
        assert "self_audio_speaker_set_volume" in asyncio.run(names("operator"))
        assert asyncio.run(names("reader")) == []
        with pytest.raises(MCPError):
            asyncio.run(names("stranger"))
    anonymous = guarded.post(f"/mcp/devices/{device_id}", INITIALIZE)
    assert anonymous.status == 401
    assert "resource_metadata" in anonymous.headers["www-authenticate"]


def signed_in(registered: dict[str, Any]) -> DeviceModel:
    return DeviceModel(user_name=registered["mqtt"]["username"], password=registered["mqtt"]["password"].encode())
