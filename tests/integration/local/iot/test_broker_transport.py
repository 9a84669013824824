"""Calls to devices inside the broker's process: in order, each with its own reply, and never sent twice."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.iot.broker.limits import Limits
from infra.local.iot.broker_transport import BrokerTransport
from infra.local.iot.mqtt.packets import Publish
from infra.local.iot.simulator.quirks import Quirk
from shared.devices import protocol
from shared.devices.registry import RegisteredDevice
from shared.devices.rpc import RpcClient
from shared.rpc.errors import KhoError, OutOfTime, TooLarge, TooManyRequests, Unavailable
from tests.helpers.device_backend import TIMEOUT_MS, DeviceBackend, running_device_backend, timed_out
from tests.helpers.mqtt_client import DOWN, PATIENT, client, running_broker
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator

ECHO = "self.test.echo"
LAMP = RegisteredDevice("lamp", "local", "", "direct", "")
WITHOUT_RATE = replace(PATIENT, publishes_per_second=None)


@pytest.fixture(scope="module")
def home() -> Iterator[DeviceBackend]:
    with running_device_backend(WITHOUT_RATE, in_process=True) as running:
        assert isinstance(running.talks.rpc.transport, BrokerTransport)
        yield running


def call_error(rpc: RpcClient, device: RegisteredDevice, arguments: dict[str, Any]) -> KhoError:
    """Return the error of a request."""
    with pytest.raises(KhoError) as refusal:
        rpc.request(device, "", "tools/call", arguments, deadline=time.monotonic() + CEILING_SECONDS)
    return refusal.value


def test_a_device_receives_messages_in_the_order_of_their_caller(home: DeviceBackend) -> None:
    with home.device() as one:
        numbers = [str(number) for number in range(200)]
        for number in numbers:
            home.talks.rpc.notify(one.device, protocol.alert(number, "", ""), time.monotonic())
        until(lambda: [each.get("status") for each in one.down] == numbers)


@pytest.mark.parametrize("quirks", [[Quirk.OUT_OF_ORDER], [Quirk.SUBSCRIBES, Quirk.DOUBLED]])
def test_replies_reach_their_callers(home: DeviceBackend, quirks: list[Quirk]) -> None:
    with home.device(*quirks) as one, ThreadPoolExecutor(20) as callers:
        one.call(ECHO, text="first")
        texts = [f"text {number}" for number in range(60)]
        assert list(callers.map(lambda text: one.text(ECHO, text=text), texts)) == texts
        assert sorted(arguments["text"] for _, arguments in one.runs) == sorted(["first", *texts])


def test_late_and_repeated_replies_are_counted_and_dropped(home: DeviceBackend) -> None:
    dropped = home.talks.rpc.dropped.counts
    with home.device(reorder_seconds=3600) as one:
        one.call(ECHO, text="ready")
        one.simulated.quirks.add(Quirk.OUT_OF_ORDER)  # the device delays its reply
        late, repeated = dropped["late"], dropped["repeated"]
        assert isinstance(timed_out(one, ECHO, lambda: len(one.runs) == 2, text="late"), OutOfTime)
        one.simulated.quirks.discard(Quirk.OUT_OF_ORDER)
        assert one.text(ECHO, text="next") == "next"
        one.fleet.do(one.simulated.release)
        until(lambda: dropped["late"] == late + 1)
        one.fleet.do(lambda: one.simulated._publish(one.up[-2]))
        until(lambda: dropped["repeated"] == repeated + 1)
        assert one.text(ECHO, text="after") == "after"


@pytest.mark.parametrize("downlink", ["direct", "publish"])
def test_an_absent_device_is_sent_nothing(home: DeviceBackend, downlink: Any) -> None:
    error = call_error(home.talks.rpc, replace(LAMP, downlink=downlink), {})
    assert isinstance(error, Unavailable)
    assert (error.code, error.details["sent"]) == ("DEVICE_OFFLINE", False)


def test_a_device_that_subscribes_is_reached_by_publishing(home: DeviceBackend) -> None:
    with home.device(Quirk.SUBSCRIBES) as one:
        published = replace(one.device, downlink="publish")
        assert home.talks.call(published, ECHO, {"text": "x"}, TIMEOUT_MS).content[0]["text"] == "x"


def test_a_message_above_the_brokers_limit_is_refused(home: DeviceBackend) -> None:
    with home.device() as one, pytest.raises(TooLarge):
        home.talks.rpc.transport.send(one.device, b"x" * (128 * 1024 + 1))


def test_a_device_that_does_not_read_is_refused_further_messages() -> None:
    with running_broker(replace(WITHOUT_RATE, outbound_bytes=1)) as served, client(served, LAMP.id) as lamp:
        transport = BrokerTransport(served.broker)
        (connection,) = served.broker.broker._open_connections
        served.broker.call(lambda _: connection.pause_writing())
        with pytest.raises(TooManyRequests):
            transport.send(LAMP, b"never")
        served.broker.call(lambda _: connection.resume_writing())
        transport.send(LAMP, b"now")
        assert lamp.expect(Publish).payload == b"now"


def test_after_the_brokers_end_nothing_is_sent_and_its_successor_takes_calls() -> None:
    with running_broker() as served, client(served, LAMP.id):
        former = RpcClient(BrokerTransport(served.broker))
        (connection,) = served.broker.broker._open_connections
    served.broker.broker._connections[LAMP.id] = connection  # a call that found it connected just before the end
    error = call_error(former, LAMP, {})
    assert isinstance(error, Unavailable)
    assert "nothing was sent" in error.message
    with running_broker() as served, client(served, LAMP.id) as lamp, ThreadPoolExecutor(1) as caller:
        rpc, deadline = RpcClient(BrokerTransport(served.broker)), time.monotonic() + CEILING_SECONDS
        call = caller.submit(rpc.request, LAMP, "", "tools/call", {}, deadline=deadline)
        message = lamp.expect(Publish)
        assert message.topic == DOWN
        reply = {"jsonrpc": "2.0", "id": json.loads(message.payload)["payload"]["id"], "result": "done"}
        lamp.publish("devices/lamp/up", json.dumps({"type": "mcp", "payload": reply}).encode())
        assert call.result() == "done"


def test_calls_in_quick_succession_lose_no_reply_to_the_publish_rate() -> None:
    with running_device_backend(replace(PATIENT, publishes_per_second=10), in_process=True) as home:
        with home.device() as one:
            texts = [str(number) for number in range(20)]
            assert [one.text(ECHO, text=text) for text in texts] == texts
        assert home.core.broker.broker.counters.dropped_rate == 0


def test_a_call_whose_turn_comes_after_its_deadline_is_refused() -> None:
    with running_broker(Limits(publishes_per_second=1)) as served:
        transport = BrokerTransport(served.broker)

        def hurry() -> None:
            for _ in range(20):
                transport.subscribed(LAMP.id, time.monotonic())

        with pytest.raises(TooManyRequests) as refusal:
            hurry()
        assert "nothing was sent" in refusal.value.message
        assert refusal.value.details["retry_after_seconds"] in (1, 2)
