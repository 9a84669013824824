"""Isolation cases of devices."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tests.e2e.tenant_isolation.case import OWNER, IsolationCase
from tests.helpers.api_client import run_kho
from tests.helpers.mqtt_client import RawMqttClient
from tests.helpers.wait import until

if TYPE_CHECKING:
    from tests.helpers.api_client import ApiClient


DEVICES = "device-server"


def make_device(client: ApiClient, _id: str) -> str:
    """Return the server's one device for all cases. No case changes it."""
    return device_at(client)


@cache
def device_at(client: ApiClient) -> str:
    """Register a device that sends a notification."""
    id_ = uuid4().hex
    register = ("devices", "register", id_, "--tenant", OWNER, "--name", "a secret lamp", "--json")
    process = run_kho(*register, "--data", str(client.server.data))
    assert process.returncode == 0, process.stderr
    with RawMqttClient(client.server.mqtt_port) as lamp:
        password = json.loads(process.stdout)["mqtt"]["password"]
        assert lamp.connect(id_, user_name=id_, password=password.encode()).reason == 0
        notification = {"jsonrpc": "2.0", "method": "notifications/secret", "params": {}}
        lamp.publish(f"devices/{id_}/up", json.dumps({"type": "mcp", "payload": notification}).encode())
        until(lambda: read_device(client, id_)[1]["notifications"])
    until(lambda: read_device(client, id_)[0].get("disconnect_reason"))
    # A function remembers for two seconds that a device was connected.
    until(lambda: not read_device(client, id_)[0]["connected"])
    return id_


def read_device(client: ApiClient, id_: str) -> Any:
    return (
        client.result(f"{DEVICES}/devices/get", device_id=id_),
        client.result(f"{DEVICES}/notifications/list", device_id=id_),
    )


def device(**params: Any) -> IsolationCase:
    """Return the case of a call that names a device."""
    return IsolationCase(lambda id_: {"device_id": id_, **params}, make_device, read_device)


def wrong_code(_id: str) -> dict[str, Any]:
    """Return a claim by a code that no board shows."""
    return {"code": "000000", "name": "mine"}


def set_firmware(client: ApiClient, id_: str) -> str:
    """Set firmware for a kind of board of this name."""
    client.result(f"{DEVICES}/firmware/set", board=id_, version="2.4.3", url="https://files.example/a-secret.bin")
    return id_


def read_firmware(client: ApiClient, _id: str) -> Any:
    return client.result(f"{DEVICES}/firmware/list")


def firmware(**params: Any) -> IsolationCase:
    """Return the case of a call that names a kind of board."""
    return IsolationCase(lambda id_: {"board": id_, **params}, set_firmware, read_firmware)


WEBHOOK = f"https://{'a' * 64}.example/a-secret-hook"
"""An address that is stored without being called: no name has such a label."""


def set_webhook(client: ApiClient, id_: str) -> str:
    """Set the owner's webhook, of which there is one."""
    client.result(f"{DEVICES}/webhooks/set", url=WEBHOOK, events=["presence"])
    return id_


def read_webhook(client: ApiClient, _id: str) -> Any:
    return client.result(f"{DEVICES}/webhooks/get")


def webhook(**params: Any) -> IsolationCase:
    return IsolationCase(lambda _: params, set_webhook, read_webhook)


CASES: dict[str, list[IsolationCase]] = {
    f"{DEVICES}/devices/alert": [device(message="mine")],
    f"{DEVICES}/devices/claim": [
        IsolationCase(wrong_code, make_device, read_device),
        IsolationCase(lambda id_: wrong_code(id_) | {"replaces": id_}, make_device, read_device),
    ],
    f"{DEVICES}/devices/get": [device()],
    f"{DEVICES}/devices/list": [IsolationCase(lambda _: {"limit": 1000}, make_device, read_device)],
    f"{DEVICES}/devices/release": [device()],
    f"{DEVICES}/firmware/delete": [firmware()],
    f"{DEVICES}/firmware/list": [IsolationCase(lambda _: {"limit": 1000}, set_firmware, read_firmware)],
    f"{DEVICES}/firmware/set": [firmware(version="9.9", url="https://files.example/mine.bin")],
    f"{DEVICES}/notifications/list": [device()],
    f"{DEVICES}/tools/call": [device(name="self.get_device_status", timeout_ms=1000)],
    f"{DEVICES}/tools/list": [device()],
    f"{DEVICES}/webhooks/delete": [webhook()],
    f"{DEVICES}/webhooks/get": [webhook()],
    # An address that is accepted would be answered with a new secret each time.
    f"{DEVICES}/webhooks/set": [webhook(url="https://127.0.0.1/mine", events=["presence"])],
}
