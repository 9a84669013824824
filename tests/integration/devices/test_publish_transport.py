"""The whole conversation by publishing, over a broker without IoT Core's data plane.

The embedded broker reports presence here. `make mosquitto` tests Debian's mosquitto, which does not.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from infra.local.iot.simulator.quirks import Quirk
from shared.devices.mqtt.transport import MqttTransport
from shared.rpc.errors import Unavailable
from tests.helpers.device_backend import DeviceBackend, running_device_backend
from tests.helpers.mqtt_client import TOKEN, running_broker
from tests.helpers.wait import until

if TYPE_CHECKING:
    from collections.abc import Iterator

ECHO = "self.test.echo"


@pytest.fixture(scope="module")
def broker_port() -> Iterator[int]:
    with running_broker() as broker:
        yield broker.port


@pytest.fixture(scope="module")
def home(broker_port: int) -> Iterator[DeviceBackend]:
    with pytest.MonkeyPatch.context() as settings:
        settings.setenv("KHO_AUDIO_SERVER", "audio.example")
        settings.setattr("tests.helpers.device_backend.BACKEND_TOKEN", TOKEN)
        with running_device_backend(rules=True, broker_url=f"mqtt://127.0.0.1:{broker_port}") as running:
            yield running


def test_session_by_publishing(home: DeviceBackend) -> None:
    with home.device(Quirk.SUBSCRIBES, Quirk.HELLO) as one:
        until(lambda: one.simulated.counters.hellos_accepted == 1)
        hello = next(each for each in one.down if each["type"] == "hello")
        assert (hello["transport"], hello["udp"]["server"]) == ("udp", "audio.example")

        def said_of_itself() -> tuple[str, str] | None:
            session = one.sessions.read().session if one.known else None
            return (session.name, session.version) if session and session.id == hello["session_id"] else None

        until(said_of_itself)
        assert said_of_itself() == ("simulated-esp32", "2.4.0")
        assert (len(one.sent("initialize")), len(one.sent("tools/list")), len(one.tools())) == (1, 5, 51)
        assert one.text(ECHO, text="đèn") == "đèn"
        failed = one.call_error("self.test.fail", message='say "no"\n')
        assert (failed.details["code"], failed.message) == (-32603, 'say "no"\n')
        (content,) = one.call("self.camera.take_photo").content
        assert content["type"] == "image"
        one.fleet.do(lambda: one.simulated.notify("notifications/state_changed", newState="idle"))
        until(one.notifications)
        assert [(each.method, each.params) for each in one.notifications()] == [
            ("notifications/state_changed", {"newState": "idle"})
        ]
        one.drop()
        until(lambda: one.simulated.counters.hellos_accepted == 2)
        assert one.text(ECHO, text="back") == "back"
        assert json.loads(one.up[-1])["type"] == "mcp"


def test_absent_device_is_reported_immediately(home: DeviceBackend) -> None:
    with home.device(Quirk.SUBSCRIBES, Quirk.HELLO, reconnect_seconds=(3600.0, 3600.0)) as one:
        until(lambda: one.simulated.counters.hellos_accepted == 1)
        assert one.text(ECHO, text="x") == "x"
        one.drop()
        home.talks.rpc.transport.close()  # type: ignore[attr-defined]  # so that the device was not heard recently
        error = one.call_error(ECHO, text="x")
        assert isinstance(error, Unavailable)
        assert error.code == "DEVICE_OFFLINE"


def test_absent_device_is_reported_after_a_step_back_of_the_clock(home: DeviceBackend) -> None:
    """It was heard in the future: that is not within the last seconds."""
    with home.device(Quirk.SUBSCRIBES, Quirk.HELLO, reconnect_seconds=(3600.0, 3600.0)) as one:
        until(lambda: one.simulated.counters.hellos_accepted == 1)
        assert one.text(ECHO, text="x") == "x"
        one.drop()
        until(lambda: not one.simulated.connected)
        transport = home.talks.rpc.transport
        assert isinstance(transport, MqttTransport)
        for connection in transport._connections:
            for subscription in connection._by_topic.values():
                subscription.last_message_at = time.time() + 2 * 86_400
        assert one.call_error(ECHO, text="x").code == "DEVICE_OFFLINE"
