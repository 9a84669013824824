"""Arguments that a device command rejects before it reads any data."""

from __future__ import annotations

import pytest

from infra.clients.cli.devices import client
from infra.clients.cli.devices.broker import firmware_endpoint, host_and_port
from infra.clients.cli.devices.call import call
from infra.clients.cli.devices.register import register
from infra.local.data_folder import ServerInfo
from infra.local.iot.simulator.firmware import parse_endpoint
from shared.devices.registry import RegisteredDevice
from shared.devices.vision import vision_offer
from shared.platform.config import config
from shared.platform.runtime import runtime


@pytest.mark.parametrize("device_id", ["", "a/b", "+", "kho-backend-1", "a b", "x" * 129])
def test_invalid_device_id_is_rejected(device_id: str) -> None:
    with pytest.raises(SystemExit, match="cannot be a device"):
        register(device_id)


def test_tenant_and_name_are_validated() -> None:
    with pytest.raises(SystemExit, match="cannot be a tenant"):
        register("lamp", tenant="a#b")
    with pytest.raises(SystemExit, match="at most 128 printable characters"):
        register("lamp", name="a\n")


@pytest.mark.parametrize("argument", ["volume", "=70", ""])
def test_argument_syntax(argument: str) -> None:
    with pytest.raises(SystemExit, match="is not an argument"):
        call("lamp", "self.audio_speaker.set_volume", argument)


def test_broker_url_parsing() -> None:
    assert host_and_port("mqtt://broker.example") == ("broker.example", 1883)
    assert host_and_port("mqtts://[::1]:9", ("mqtt", "mqtts")) == ("::1", 9)
    for wrong in ("", "broker.example", "mqtt://", "mqtt://x:0", "mqtt://x:99999", "http://x", "mqtts://x"):
        with pytest.raises(SystemExit, match="is not a broker URL"):
            host_and_port(wrong)


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("mqtt://127.0.0.1:8302", "127.0.0.1", 8302),
        ("mqtt://broker.example", "broker.example", 1883),
        ("mqtts://a1b2.iot.eu-central-1.amazonaws.com", "a1b2.iot.eu-central-1.amazonaws.com", 8883),
    ],
)
def test_firmware_takes_the_endpoint(url: str, host: str, port: int) -> None:
    endpoint = firmware_endpoint(url)
    assert "://" not in endpoint
    assert parse_endpoint(endpoint) == (host, port)


def test_ipv6_address_is_not_an_endpoint() -> None:
    assert firmware_endpoint("mqtt://[::1]:8302") == ""


@pytest.mark.parametrize("endpoint", ["mqtt://127.0.0.1:8302", "host:", "::1", "[::1]:8302"])
def test_simulated_firmware_rejects_an_endpoint_as_the_firmware_does(endpoint: str) -> None:
    with pytest.raises(ValueError, match="is not a number"):
        parse_endpoint(endpoint)


def test_endpoint_without_port_means_tls() -> None:
    assert parse_endpoint("broker.example") == ("broker.example", 8883)


def test_session_that_a_command_starts_offers_the_servers_explanation_of_photos(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runtime, "environment", {})
    server = ServerInfo(
        pid=1,
        address="http://127.0.0.1:8001",
        store_url="",
        mqtt_url="mqtt://127.0.0.1:1883",
        mqtt_token="word",
        data_plane_url="",
        board_url="http://192.168.1.5:8001",
        model_provider="openai",
    )
    monkeypatch.setattr(client, "running_server", lambda _data: server)
    monkeypatch.setattr(runtime, "functions", None)
    client._embedded_backend(client.DeviceTarget())
    offer = vision_offer(RegisteredDevice("lamp", "local", "", "direct", ""))
    assert offer
    assert offer.url == "http://192.168.1.5:8001/vision/explain"
    monkeypatch.undo()
    config.cache_clear()
