"""A device that says hello as soon as it connects: one session, in either order of the two events."""

from __future__ import annotations

import base64
import json
import queue
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.iot.simulator.quirks import Quirk
from shared.platform.config import config
from tests.helpers.device_backend import DeviceBackend, DeviceUnderTest, running_device_backend
from tests.helpers.wait import CEILING_SECONDS, until
from workers import device_inbox, device_presence

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def home() -> Iterator[DeviceBackend]:
    """Yield a backend whose workers receive only the events that tests pass, in their order."""
    with pytest.MonkeyPatch.context() as settings:
        settings.setenv("KHO_AUDIO_SERVER", "audio.example")
        with running_device_backend() as running:
            yield running


@pytest.fixture
def connected(home: DeviceBackend) -> Iterator[queue.SimpleQueue[dict[str, Any]]]:
    """Yield the connect events."""
    events: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    stop = home.core.broker.listen(
        "$aws/events/presence/connected/+",
        lambda message: None if b"kho-backend-" in message.payload else events.put(json.loads(message.payload)),
    )
    yield events
    stop()


def deliver_first_message(one: DeviceUnderTest, *, age: float = 0.0) -> None:
    """Pass the device's first message to its function."""
    until(lambda: one.up)
    payload = base64.b64encode(one.up[0]).decode("ascii")
    timestamp = int((time.time() - age) * 1000)
    device_inbox.handler({"payload": payload, "device_id": one.id, "timestamp": timestamp}, None)


def answered_session(one: DeviceUnderTest) -> str:
    """Return the session in the answer to the device's latest hello."""
    answers = [each["session_id"] for each in one.down if each["type"] == "hello"]
    return str(answers[-1])


def session_of(one: DeviceUnderTest) -> str:
    session = one.sessions.read().session
    return session.id if session else ""


def test_hello_event_before_connect_event(home: DeviceBackend, connected: queue.SimpleQueue[dict[str, Any]]) -> None:
    with home.device(Quirk.HELLO) as one:
        event = connected.get(timeout=CEILING_SECONDS)
        deliver_first_message(one)
        assert session_of(one) == answered_session(one)
        device_presence.handler(event, None)
        assert one.sessions.read().presence
        assert (len(one.sent("initialize")), session_of(one)) == (1, answered_session(one))


def test_hello_event_during_connect_processing(
    home: DeviceBackend, connected: queue.SimpleQueue[dict[str, Any]]
) -> None:
    with home.device(Quirk.HELLO) as one, ThreadPoolExecutor(1) as other:
        handled = other.submit(device_presence.handler, connected.get(timeout=CEILING_SECONDS), None)
        until(lambda: one.sent("initialize"))  # a device does not answer it while it waits for its hello's answer
        deliver_first_message(one)
        handled.result(CEILING_SECONDS)
        assert (len(one.sent("initialize")), session_of(one)) == (1, answered_session(one))
        assert one.text("self.test.echo", text="x") == "x"
        assert one.down[-1]["session_id"] == answered_session(one)


def test_hello_that_waited_longer_than_the_device_is_not_answered(home: DeviceBackend) -> None:
    """A message that waited for an instance of its function disturbs no session."""
    with home.device(Quirk.HELLO) as one:
        deliver_first_message(one, age=11)
        assert (one.sent("initialize"), session_of(one)) == ([], "")
        assert [each for each in one.down if each["type"] == "hello"] == []
        deliver_first_message(one)
        assert session_of(one) == answered_session(one)


def test_later_hello_starts_a_new_session(home: DeviceBackend, connected: queue.SimpleQueue[dict[str, Any]]) -> None:
    with home.device() as one:
        device_presence.handler(connected.get(timeout=CEILING_SECONDS), None)
        first, payload = session_of(one), len(one.up)
        one.fleet.do(one.simulated.hello)
        until(lambda: len(one.up) > payload)
        del one.up[:payload]
        deliver_first_message(one)
        assert first != session_of(one) == answered_session(one)
        assert [each["method"] for each in one.sent("initialize")] == ["initialize"] * 2


def test_reconnected_device_is_initialized_again(
    home: DeviceBackend, connected: queue.SimpleQueue[dict[str, Any]]
) -> None:
    # The device's second hello stays unanswered, so that it is silent for a while.
    with home.device(Quirk.HELLO, hello_seconds=0.2) as one:
        connected.get(timeout=CEILING_SECONDS)
        deliver_first_message(one)
        before = session_of(one)
        one.drop()
        device_presence.handler(connected.get(timeout=CEILING_SECONDS), None)
        assert session_of(one) == before, "the next call starts a session"
        assert one.text("self.test.echo", text="x") == "x"
        assert session_of(one) != before


def test_hello_without_an_audio_server_frees_the_device(home: DeviceBackend) -> None:
    """Firmware that finds no audio server in the answer is silent for ten seconds."""
    with pytest.MonkeyPatch.context() as settings:
        settings.delenv("KHO_AUDIO_SERVER")
        config.cache_clear()
        with home.device(Quirk.HELLO) as one:
            deliver_first_message(one)
            assert one.text("self.test.echo", text="x") == "x"
            hello, goodbye = one.down[:2]
            assert (hello["type"], hello["udp"]["server"]) == ("hello", "127.0.0.1")
            assert goodbye == {"type": "goodbye", "session_id": hello["session_id"]}
            assert (one.simulated.counters.hellos_accepted, one.simulated.audio_open) == (1, False)
    config.cache_clear()


def test_hello_of_another_transport_opens_no_channel(home: DeviceBackend) -> None:
    with pytest.MonkeyPatch.context() as settings, home.device() as one:
        settings.delenv("KHO_AUDIO_SERVER")
        config.cache_clear()
        until(lambda: one.simulated.connected)
        payload = b'{"type":"hello","features":{},"transport":"websocket"}'
        device_inbox.handler({"payload": base64.b64encode(payload).decode("ascii"), "device_id": one.id}, None)
        until(lambda: one.down)
        assert one.down == [{"type": "hello", "transport": "websocket", "session_id": one.down[0]["session_id"]}]
    config.cache_clear()
