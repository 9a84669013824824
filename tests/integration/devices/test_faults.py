"""Faults on the way to devices: documented errors in time, automatic recovery, no effect on other devices."""

from __future__ import annotations

import itertools
import json
import os
import queue
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.iot.simulator.device import DeviceModel
from infra.local.iot.simulator.fleet import Fleet
from infra.local.iot.simulator.quirks import Quirk
from shared.devices.call_limits import MAX_TIMEOUT_MS
from shared.devices.mqtt.transport import MqttTransport
from shared.devices.registry import registry
from shared.devices.sessions import DevicePresence
from shared.rpc.errors import Conflict, OutOfTime
from tests.helpers.clock import Clock
from tests.helpers.device_backend import TIMEOUT_MS, DeviceBackend, DeviceUnderTest, running_device_backend
from tests.helpers.mqtt_client import PATIENT
from tests.helpers.wait import CEILING_SECONDS, until
from workers import device_presence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ECHO, SLEEP = "self.test.echo", "self.test.sleep"


@pytest.fixture(scope="module")
def home() -> Iterator[DeviceBackend]:
    """Yield a backend whose broker ends connections that are silent for 1.5 s."""
    with running_device_backend(replace(PATIENT, keepalive_seconds=(1, 1200)), rules=True) as running:
        yield running


def wait_for_session(one: DeviceUnderTest) -> None:
    until(lambda: one.sessions.read().session)


def test_device_lost_during_a_call_is_reported_before_the_timeout(home: DeviceBackend) -> None:
    with home.device(reconnect_seconds=(3600.0, 3600.0)) as one, ThreadPoolExecutor() as caller:
        wait_for_session(one)
        call = caller.submit(one.call_error, SLEEP, milliseconds=60_000)
        until(lambda: one.sent("tools/call"))
        one.drop()
        error = call.result()
        assert isinstance(error, OutOfTime)
        assert (error.code, error.details["sent"]) == ("DEVICE_TIMEOUT", True)
        assert "lost its connection" in error.message
        assert one.call_error(ECHO, text="x").code == "DEVICE_OFFLINE"


@contextmanager
def connecting(home: DeviceBackend) -> Iterator[Callable[[], None]]:
    """Yield a function that passes the next connection event to its worker, and no event of an ended connection."""
    events: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    stop = home.core.broker.listen(
        "$aws/events/presence/connected/+",
        lambda message: None if b"kho-backend-" in message.payload else events.put(json.loads(message.payload)),
    )
    try:
        yield lambda: device_presence.handler(events.get(timeout=CEILING_SECONDS), None)
    finally:
        stop()


def test_second_device_with_same_id_replaces_the_session() -> None:
    with (
        running_device_backend() as home,
        connecting(home) as tell,
        home.device(reconnect_seconds=(3600.0, 3600.0)) as one,
        ThreadPoolExecutor() as caller,
    ):
        tell()
        call = caller.submit(one.call_error, SLEEP, milliseconds=60_000)
        until(lambda: one.sent("tools/call"))
        with Fleet("127.0.0.1", home.port, [one.id], DeviceModel(connect_seconds=CEILING_SECONDS)) as second:
            second.start()
            tell()
            error = call.result()
            assert isinstance(error, Conflict)
            assert (error.code, error.details["sent"]) == ("SESSION_REPLACED", True)
            assert one.text(ECHO, text="to the second") == "to the second"
            assert second.devices[0].firmware.runs == [(ECHO, {"text": "to the second"})]


def test_reconnect_during_a_call_loses_the_call() -> None:
    with (
        running_device_backend() as home,
        connecting(home) as tell,
        home.device() as one,
        ThreadPoolExecutor() as caller,
    ):
        tell()
        call = caller.submit(one.call_error, SLEEP, milliseconds=60_000)
        until(lambda: one.sent("tools/call"))
        one.drop()
        tell()
        assert call.result().code == "SESSION_REPLACED"
        one.fleet.do(one.simulated.finish)
        assert one.text(ECHO, text="back") == "back"
        assert len(one.sent("tools/call")) == 2


def test_backend_connection_lost_during_a_call(home: DeviceBackend) -> None:
    """The device does not notice, and its answer arrives on the next connection."""
    with home.device() as one, ThreadPoolExecutor() as caller:
        wait_for_session(one)
        one.call(ECHO, text="x")
        call = caller.submit(one.text, SLEEP, milliseconds=60_000)
        until(lambda: len(one.sent("tools/call")) == 2)
        line = home.talks.rpc.transport
        assert isinstance(line, MqttTransport)
        ids = [connection.client_id for connection in line._connections]
        for client_id in ids:
            home.core.broker.call(methodcaller("end_connection", client_id))

        def heard_again() -> bool:
            connections = home.core.broker.broker._connections
            return any(f"devices/{one.id}/up" in connections[each].subscriptions for each in ids if each in connections)

        until(heard_again)
        one.fleet.do(one.simulated.finish)
        assert call.result() == "60000"


def test_lost_subscription_is_renewed(home: DeviceBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.devices.mqtt.connection._TRUSTED_SECONDS", 0.0)
    with home.device() as one:
        wait_for_session(one)
        one.call(ECHO, text="x")
        line = home.talks.rpc.transport
        assert isinstance(line, MqttTransport)
        broker = home.core.broker
        for connection in line._connections:
            at_broker = broker.broker._connections[connection.client_id]
            broker.call(methodcaller("unsubscribe", at_broker, f"devices/{one.id}/up"))
        assert one.text(ECHO, text="heard") == "heard"


def test_many_devices_share_few_connections(home: DeviceBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.devices.mqtt.connection._MAX_SUBSCRIPTIONS", 3)
    line = home.talks.rpc.transport
    assert isinstance(line, MqttTransport)
    with Fleet(
        "127.0.0.1", home.port, [f"many-{number}" for number in range(20)], DeviceModel(connect_seconds=CEILING_SECONDS)
    ) as fleet:
        fleet.start()
        with ThreadPoolExecutor(20) as callers:

            def call(number: int) -> str:
                device = registry().find_any_tenant(f"many-{number}")
                assert device
                text: str = home.talks.call(device, ECHO, {"text": str(number)}, TIMEOUT_MS).content[0]["text"]
                return text

            numbers = [*range(20), *range(20)]
            assert list(callers.map(call, numbers)) == [str(each) for each in numbers]
        assert all(len(each._by_topic) <= 45 for each in line._connections)


def test_garbage_flood_does_not_affect_others() -> None:
    # This clock stands still: the broker takes only the first hundred messages of a device.
    clock = Clock()
    with (
        running_device_backend(rules=True, clock=clock) as home,
        home.device() as well,
        home.device(Quirk.FLOOD) as sick,
    ):
        counts = home.core.broker.broker.counters
        wait_for_session(well)
        until(lambda: counts.dropped_rate > 500)
        assert [well.text(ECHO, text=str(number)) for number in range(50)] == [str(number) for number in range(50)]
        assert sick.call_error(ECHO, timeout_ms=1_000, text="x").code == "DEVICE_TIMEOUT"

        # That call listens to the device: unexpected replies are counted when the broker delivers them.
        dropped = home.talks.rpc.dropped.counts
        before = dropped["unasked"]

        def counted() -> bool:
            clock.advance(1)
            return dropped["unasked"] > before

        until(counted)


def test_lifecycle_events_are_order_independent_and_idempotent(home: DeviceBackend) -> None:
    events = [
        DevicePresence(connected=True, connection="a", changed_at=100_000, version=0),
        DevicePresence(connected=False, connection="a", changed_at=160_003, version=0, reason="DUPLICATE_CLIENTID"),
        DevicePresence(connected=True, connection="b", changed_at=160_000, version=1),
        DevicePresence(connected=False, connection="b", changed_at=170_000, version=1, reason="CONNECTION_LOST"),
        DevicePresence(connected=True, connection="c", changed_at=171_000, version=2),
    ]
    with home.device() as one:
        wait_for_session(one)
        one.fleet.do(one.simulated.stop)
        until(lambda: not _connected(one))
        for number, order in enumerate(itertools.islice(itertools.permutations(events), 0, None, 5)):
            sessions = type(one.sessions)(one.sessions._table, "local", f"{one.id}-{number}")
            for event in (*order, *order):
                sessions.record_presence(event)
            assert sessions.read().presence == events[-1]
    restarted = DevicePresence(connected=True, connection="d", changed_at=190_000, version=0)
    assert sessions.record_presence(restarted)


def _connected(one: DeviceUnderTest) -> bool:
    presence = one.sessions.read().presence
    return presence is not None and presence.connected


class Function:
    """A function in its own process."""

    def __init__(self, keepalive: int = 240) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.helpers.device_function"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"KHO_MQTT_KEEPALIVE": str(keepalive)},
        )

    def send(self, device_id: str, name: str, timeout_ms: int = MAX_TIMEOUT_MS, **arguments: Any) -> None:
        """Begin a call."""
        assert self.process.stdin
        params = {"device_id": device_id, "name": name, "arguments": arguments, "timeout_ms": timeout_ms}
        self.process.stdin.write(json.dumps(params) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        """Return the next answer. All other output is the log."""
        assert self.process.stdout
        for line in self.process.stdout:
            message = json.loads(line) if line.startswith(('{"result', '{"error')) else None
            if message:
                return message
        raise AssertionError("the function ended")

    def call(self, device_id: str, name: str, **arguments: Any) -> Any:
        """Call and return the answer."""
        self.send(device_id, name, **arguments)
        return self.answer()


@contextmanager
def function(keepalive: int = 240) -> Iterator[Function]:
    running = Function(keepalive)
    try:
        yield running
    finally:
        running.process.send_signal(signal.SIGCONT)
        running.process.kill()
        running.process.communicate()


def text(answer: Any) -> str:
    text: str = answer["result"]["content"][0]["text"]
    return text


def test_function_frozen_longer_than_the_keepalive(home: DeviceBackend) -> None:
    keepalive = 2

    def backends() -> set[str]:
        """Return the ids of the backends' connections."""
        return {each for each in list(home.core.broker.broker._connections) if each.startswith("kho-backend-")}

    with home.device() as one, function(keepalive) as frozen:
        wait_for_session(one)
        before = backends()
        assert text(frozen.call(one.id, ECHO, text="before")) == "before"
        used_at = time.time()
        frozen.process.send_signal(signal.SIGSTOP)
        until(lambda: backends() <= before)  # the broker waits 1.5 times the keep-alive
        until(lambda: time.time() - used_at > 2 * keepalive)
        frozen.process.send_signal(signal.SIGCONT)
        assert text(frozen.call(one.id, ECHO, text="after")) == "after"
        assert [arguments["text"] for _, arguments in one.runs] == ["before", "after"]


def test_two_functions_call_one_device_concurrently(home: DeviceBackend) -> None:
    with home.device() as one, function() as first, function() as second:
        for number in range(20):
            first.send(one.id, ECHO, text=f"first {number}")
            second.send(one.id, ECHO, text=f"second {number}")
        for each, name in ((first, "first"), (second, "second")):
            assert sorted(text(each.answer()) for _ in range(20)) == sorted(f"{name} {number}" for number in range(20))
        assert len(one.runs) == 40
        assert len(one.sent("initialize")) <= 2  # presence, and the caller that was earlier than presence


def test_concurrent_cold_starts_handshake_once() -> None:
    with running_device_backend() as quiet, quiet.device() as one, function() as first, function() as second:
        for each in (first, second):
            for number in range(5):
                each.send(one.id, ECHO, text=str(number))
        for each in (first, second):
            assert sorted(text(each.answer()) for _ in range(5)) == ["0", "1", "2", "3", "4"]
        assert (len(one.sent("initialize")), len(one.sent("tools/list"))) == (1, 5)
