"""Devices' results and failures at both MCP endpoints, in every revision."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from endpoints import device_mcp, mcp
from infra.local.iot.simulator.tools import RawResult, SimulatedTool
from shared.rpc.mcp_catalog import mcp_catalog
from tests.helpers.clock import Clock
from tests.helpers.device_backend import DeviceBackend, DeviceUnderTest, running_device_backend
from tests.helpers.mcp_events import REVISIONS, in_process_mcp_server, request_event, response_message
from tests.helpers.wait import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Call = Callable[..., Any]
    """Calls a device's tool in a revision of MCP, and returns the endpoint's message."""


@pytest.fixture(scope="module")
def home() -> Iterator[DeviceBackend]:
    with running_device_backend() as running:
        yield running


@pytest.fixture(scope="module", params=["/mcp", "/mcp/devices/{device_id}"])
def call(request: pytest.FixtureRequest, home: DeviceBackend) -> Iterator[Call]:
    with in_process_mcp_server() as transport:

        def call_at_mcp(one: DeviceUnderTest, revision: str, name: str, **arguments: Any) -> Any:
            params = {"device_id": one.id, "name": name, "arguments": arguments}
            event = request_event("tools/call", revision, name="device_tools_call", arguments=params)
            return response_message(mcp.handle_message(event, transport))

        def call_at_device(one: DeviceUnderTest, revision: str, name: str, **arguments: Any) -> Any:
            event = request_event("tools/call", revision, name=name, arguments=arguments)
            return response_message(device_mcp.handler(event | {"pathParameters": {"device_id": one.id}}, None))

        yield call_at_mcp if request.param == "/mcp" else call_at_device
    device_mcp._transport.cache_clear()


def device_with_result(result: dict[str, Any]) -> SimulatedTool:
    return SimulatedTool("self.own", "Answer as own firmware may.", lambda _state, _arguments: RawResult(result))


@pytest.mark.parametrize("revision", REVISIONS)
def test_image_is_image_content(home: DeviceBackend, call: Call, revision: str) -> None:
    with home.device() as one:
        result = call(one, revision, "self.camera.take_photo")["result"]
        (image,) = result["content"]
        assert (image["type"], image["mimeType"]) == ("image", "image/jpeg")
        assert image["data"].startswith("/9j/")
        assert result["isError"] is False
        assert "structuredContent" not in result


@pytest.mark.parametrize("revision", REVISIONS)
def test_tool_that_reports_its_failure_is_an_error_result(home: DeviceBackend, call: Call, revision: str) -> None:
    jammed = {"content": [{"type": "text", "text": "motor jammed"}], "isError": True}
    with home.device(tools=[device_with_result(jammed)]) as one:
        result = call(one, revision, "self.own")["result"]
        assert (result["content"], result["isError"]) == (jammed["content"], True)


@pytest.mark.parametrize("revision", REVISIONS)
def test_failure_of_a_device_is_an_error_result(home: DeviceBackend, call: Call, revision: str) -> None:
    with home.device() as one:
        failed = call(one, revision, "self.test.fail", message="motor jammed")["result"]
        assert failed["isError"] is True
        assert "motor jammed" in failed["content"][0]["text"]
        unknown = call(one, revision, "self.nothing")["result"]
        assert (unknown["isError"], unknown["structuredContent"]["details"]) == (True, {"code": -32601})
        one.fleet.do(one.simulated.stop)
        until(lambda: not one.simulated.connected)
        offline = call(one, revision, "self.get_device_status")["result"]
        assert (offline["isError"], offline["structuredContent"]["code"]) == (True, "DEVICE_OFFLINE")


@pytest.mark.parametrize(
    "content",
    [
        {"type": "image", "mimeType": "text/html", "data": "aGk="},
        {"type": "image", "mimeType": "image/png", "data": "!!"},
        {"type": "image", "image": json.dumps({"mimeType": "text/html", "data": "!!"})},
    ],
)
@pytest.mark.parametrize("revision", REVISIONS)
def test_invalid_image_is_an_error_result(
    home: DeviceBackend, call: Call, revision: str, content: dict[str, Any]
) -> None:
    with home.device(tools=[device_with_result({"content": [content]})]) as one:
        result = call(one, revision, "self.own")["result"]
        assert (result["isError"], result["structuredContent"]["code"]) == (True, "DEVICE_REPLY_UNREADABLE")


@pytest.mark.parametrize("revision", REVISIONS)
def test_content_of_an_unknown_type_is_text(home: DeviceBackend, call: Call, revision: str) -> None:
    parts = [{"type": "zzz", "x": 1}, {"type": "text", "text": "on", "annotations": 7}]
    with home.device(tools=[device_with_result({"content": parts})]) as one:
        texts = call(one, revision, "self.own")["result"]["content"]
        assert texts == [{"type": "text", "text": '{"type":"zzz","x":1}'}, {"type": "text", "text": "on"}]


@pytest.mark.parametrize("revision", REVISIONS)
def test_slow_tool_has_the_time_of_the_request(home: DeviceBackend, call: Call, revision: str) -> None:
    """A model's client cannot ask for more time, so a call has as much as the request has."""
    clock, late_readings = Clock(time.monotonic()), []
    started = clock()

    def read_clock() -> float:
        if clock() > started:
            late_readings.append(clock())
        return clock()

    with home.device() as one, ThreadPoolExecutor(1) as caller, pytest.MonkeyPatch.context() as patch:
        one.tools()
        patch.setattr(home.talks.rpc, "clock", read_clock)
        reply = caller.submit(call, one, revision, "self.test.sleep", milliseconds=60_000)
        until(lambda: one.sent("tools/call"))
        clock.advance(17.5)
        until(lambda: late_readings)
        one.fleet.do(one.simulated.finish)
        assert reply.result()["result"]["content"] == [{"type": "text", "text": "60000"}]


def test_tool_describes_its_default_timeout() -> None:
    (tool,) = [each.described for each in mcp_catalog().tools if each.name == "device_tools_call"]
    assert tool["inputSchema"]["properties"]["timeout_ms"]["default"] == 25_000
    assert "outputSchema" not in tool
