"""The functions' endpoint of the devices' broker: IoT Core by signed websockets, a broker directly, or none yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from shared.devices.mqtt.broker_endpoint import ConnectionCallbacks, DirectBrokerEndpoint, IotCoreEndpoint
from shared.devices.mqtt.client_factory import device_client
from shared.devices.mqtt.data_plane import data_plane
from shared.platform.config import config
from shared.rpc.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

NOWHERE = ConnectionCallbacks(lambda _topic, _payload: None, lambda: None, lambda _reason: None)
HOST = "abc-ats.iot.eu-west-1.amazonaws.com"


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("KHO_MQTT_URL", "KHO_IOT_ENDPOINT", "AWS_ENDPOINT_URL_IOT_DATA_PLANE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (("AWS_REGION", "eu-west-1"), ("AWS_ACCESS_KEY_ID", "k"), ("AWS_SECRET_ACCESS_KEY", "s")):
        monkeypatch.setenv(name, value)
    forget()
    yield
    forget()


def forget() -> None:
    for remembered in (config, device_client, data_plane):
        remembered.cache_clear()


def options(place: DirectBrokerEndpoint | IotCoreEndpoint, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the options of a new client, which does not connect before its start."""
    from awscrt import mqtt5  # type: ignore[import-untyped]

    clients: list[Any] = []
    real = mqtt5.Client

    def note(*arguments: Any, **named: Any) -> Any:
        clients.append(named.get("client_options") or arguments[0])
        return real(*arguments, **named)

    monkeypatch.setattr(mqtt5, "Client", note)
    place.create_client("kho-backend-1", NOWHERE)
    return clients[0]


def test_iot_core_uses_signed_websockets(monkeypatch: pytest.MonkeyPatch) -> None:
    clients = options(IotCoreEndpoint(HOST), monkeypatch)
    assert (clients.host_name, clients.port) == (HOST, 443)
    assert clients.websocket_handshake_transform is not None
    assert clients.tls_ctx is not None
    assert (clients.connect_options.client_id, clients.connect_options.keep_alive_interval_sec) == (
        "kho-backend-1",
        240,
    )


@pytest.mark.parametrize(
    ("url", "port", "encrypted"),
    [("mqtt://127.0.0.1", 1883, False), ("mqtt://x:2", 2, False), ("mqtts://x", 8883, True), ("mqtts://x:9", 9, True)],
)
def test_mqtt_url_is_used_directly(url: str, port: int, encrypted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    clients = options(DirectBrokerEndpoint(url, "word"), monkeypatch)
    assert (clients.port, clients.tls_ctx is not None) == (port, encrypted)
    assert (clients.connect_options.username, clients.connect_options.password) == ("kho", "word")


def test_unsent_messages_are_not_sent_after_reconnect(monkeypatch: pytest.MonkeyPatch) -> None:
    from awscrt import mqtt5

    for place in (IotCoreEndpoint(HOST), DirectBrokerEndpoint("mqtt://x", "word")):
        clients = options(place, monkeypatch)
        assert clients.offline_queue_behavior == mqtt5.ClientOperationQueueBehaviorType.FAIL_ALL_ON_DISCONNECT
        assert clients.session_behavior == mqtt5.ClientSessionBehaviorType.CLEAN


def test_missing_broker_configuration_is_reported() -> None:
    assert data_plane() is None
    with pytest.raises(Unavailable, match="No broker for devices"):
        device_client()
