"""Where functions reach the devices' broker: IoT Core by signed websockets, or a broker directly; or nowhere yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from device_server.place import Broker, Ears, IotCore
from device_server.talking import data_plane, talks
from shared.config import config
from shared.rpc.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

NOWHERE = Ears(lambda _topic, _payload: None, lambda: None, lambda _reason: None)
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
    for remembered in (config, talks, data_plane):
        remembered.cache_clear()


def options(place: Broker | IotCore, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the client is made with, which connects nowhere before it is started."""
    from awscrt import mqtt5  # type: ignore[import-untyped]

    made: list[Any] = []
    real = mqtt5.Client

    def note(*arguments: Any, **named: Any) -> Any:
        made.append(named.get("client_options") or arguments[0])
        return real(*arguments, **named)

    monkeypatch.setattr(mqtt5, "Client", note)
    place.client("kho-backend-1", NOWHERE)
    return made[0]


def test_iot_core_is_reached_by_websockets_that_are_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = options(IotCore(HOST), monkeypatch)
    assert (made.host_name, made.port) == (HOST, 443)
    assert made.websocket_handshake_transform is not None
    assert made.tls_ctx is not None
    assert (made.connect_options.client_id, made.connect_options.keep_alive_interval_sec) == ("kho-backend-1", 240)


@pytest.mark.parametrize(
    ("url", "port", "encrypted"),
    [("mqtt://127.0.0.1", 1883, False), ("mqtt://x:2", 2, False), ("mqtts://x", 8883, True), ("mqtts://x:9", 9, True)],
)
def test_a_broker_is_reached_directly(url: str, port: int, encrypted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    made = options(Broker(url, "word"), monkeypatch)
    assert (made.port, made.tls_ctx is not None) == (port, encrypted)
    assert (made.connect_options.username, made.connect_options.password) == ("kho", "word")


def test_what_is_lost_before_it_was_sent_is_never_sent_later(monkeypatch: pytest.MonkeyPatch) -> None:
    from awscrt import mqtt5

    for place in (IotCore(HOST), Broker("mqtt://x", "word")):
        made = options(place, monkeypatch)
        assert made.offline_queue_behavior == mqtt5.ClientOperationQueueBehaviorType.FAIL_ALL_ON_DISCONNECT
        assert made.session_behavior == mqtt5.ClientSessionBehaviorType.CLEAN


def test_where_no_broker_is_configured_callers_are_told() -> None:
    assert data_plane() is None
    with pytest.raises(Unavailable, match="not known here"):
        talks()
