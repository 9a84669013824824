"""The three simulated devices that `kho serve` connects for a tenant that wants to try devices."""

from __future__ import annotations

import base64
import struct
from typing import TYPE_CHECKING, Any

from tests.helpers.api_client import ApiClient, make_key
from tests.helpers.kho_server import KhoServer
from tests.helpers.wait import until

if TYPE_CHECKING:
    from pathlib import Path

SIMULATE = "device-server/devices/simulate"
GET = "device-server/devices/get"


def device_ids(answer: Any) -> dict[str, str]:
    return {each["name"]: each["device_id"] for each in answer["devices"]}


def test_devices_connect_and_answer(server: KhoServer) -> None:
    """A lamp, a thermostat and a camera connect; their tools, notifications and pictures are those of real devices."""
    ids = device_ids(server.call(SIMULATE))
    assert set(ids) == {"Desk lamp", "Thermostat", "Porch camera"}
    lamp = {"device_id": ids["Desk lamp"]}
    until(lambda: server.call(GET, **lamp)["connected"])
    schemas = {
        name: schema
        for tool in server.call("device-server/tools/list", **lamp)["tools"]
        for name, schema in tool["inputSchema"]["properties"].items()
    }
    assert schemas["on"]["type"] == "boolean"
    assert (schemas["brightness"]["minimum"], schemas["brightness"]["maximum"]) == (0, 100)
    assert schemas["color"]["enum"] == ["warm", "neutral", "cold"]

    call = {"name": "self.lamp.set_power", "arguments": {"on": True}}
    server.call("device-server/tools/call", **lamp, **call)
    status = server.call("device-server/tools/call", **lamp, name="self.get_device_status")["content"][0]["text"]
    assert '"on":true' in status
    until(lambda: server.call("device-server/notifications/list", **lamp)["notifications"])
    (notification,) = server.call("device-server/notifications/list", **lamp)["notifications"]
    assert notification["params"] == {"on": True}

    camera = {"device_id": ids["Porch camera"], "name": "self.camera.take_photo"}
    (photo,) = server.call("device-server/tools/call", **camera)["content"]
    data = base64.b64decode(photo["data"])
    assert (photo["mimeType"], data[:8]) == ("image/png", b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", data[16:24]) == (240, 160)


def test_connected_devices_are_not_connected_again(server: KhoServer) -> None:
    lamp = {"device_id": device_ids(server.call(SIMULATE))["Desk lamp"]}
    server.call("device-server/tools/call", **lamp, name="self.lamp.set_brightness", arguments={"brightness": 7})
    until(lambda: server.call(GET, **lamp)["connected"])
    server.call(SIMULATE)
    status = server.call("device-server/tools/call", **lamp, name="self.get_device_status")["content"][0]["text"]
    assert '"brightness":7' in status


def test_released_device_is_connected_anew(server: KhoServer) -> None:
    lamp = {"device_id": device_ids(server.call(SIMULATE))["Desk lamp"]}
    until(lambda: server.call(GET, **lamp)["connected"])
    server.call("device-server/devices/release", **lamp)
    assert device_ids(server.call(SIMULATE))["Desk lamp"] == lamp["device_id"]
    until(lambda: server.call(GET, **lamp)["connected"])


def test_method_is_described_and_reached_at_each_endpoint(server: KhoServer) -> None:
    described = server.get("/openapi.json").json()["paths"]
    assert f"/{SIMULATE}" in described
    assert server.post(f"/{SIMULATE}", b"{}").json() == server.call(SIMULATE)
    assert server.error(SIMULATE, number=3)["code"] == -32602


def test_each_tenant_has_its_own_which_connect_again_after_a_restart(tmp_path: Path) -> None:
    """With credentials, each tenant's devices have passwords of their own, and readers may not connect any."""
    data = tmp_path / "data"
    with KhoServer(data, "--auth", "required") as server:
        key = make_key(data, "one", "operator")["key"]
        one, two = ApiClient(server, key), ApiClient(server, make_key(data, "two", "operator")["key"])
        reader = ApiClient(server, make_key(data, "one", "reader")["key"])
        ids = device_ids(one.result(SIMULATE))
        lamp = {"device_id": ids["Desk lamp"]}
        assert not set(ids.values()) & set(device_ids(two.result(SIMULATE)).values())
        assert reader.direct(SIMULATE)[0] == 403
        assert two.direct(GET, **lamp)[0] == 404
        until(lambda: one.result(GET, **lamp)["connected"])
    with KhoServer(data, "--auth", "required") as server:
        one = ApiClient(server, key)
        assert device_ids(one.result(SIMULATE)) == ids
        until(lambda: one.result(GET, **lamp)["connected"])
