"""Many devices at one broker, one of them faulty."""

from __future__ import annotations

import json
import queue
from typing import TYPE_CHECKING

import pytest

from infra.local.iot.simulator.device import DeviceModel
from infra.local.iot.simulator.fleet import Fleet
from infra.local.iot.simulator.quirks import FIRMWARE, Quirk
from tests.helpers.clock import Clock
from tests.helpers.mqtt_client import EmbeddedBroker, running_broker, send_direct_message
from tests.helpers.size import sized
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.local.iot.broker.messages import BrokerMessage

WELL = DeviceModel(connect_seconds=CEILING_SECONDS)


def test_garbage_flood_does_not_affect_other_devices() -> None:
    sick = DeviceModel(FIRMWARE | {Quirk.FLOOD}, reconnect_seconds=(0.05, 0.1), connect_seconds=CEILING_SECONDS)
    # This clock stands still: the broker takes only the first hundred messages of a device.
    with running_broker(clock=Clock()) as served, served.heard("devices/well/up") as heard:
        counts = served.broker.broker.counters
        with (
            Fleet("127.0.0.1", served.port, ["well"], WELL) as well,
            Fleet("127.0.0.1", served.port, ["sick"], sick) as flood,
        ):
            well.start()
            flood.start()
            until(lambda: counts.dropped_rate > 500)
            request = {"jsonrpc": "2.0", "method": "initialize", "params": {}, "id": 1}
            payload = json.dumps({"type": "mcp", "payload": request}).encode()
            before = counts.dropped_rate
            for _ in range(50):
                send_direct_message(served.broker, "well", "devices/well/down", payload)
                assert b'"id":1' in heard.get(timeout=CEILING_SECONDS).payload
            until(lambda: counts.dropped_rate > before)
            assert flood.connected == 1


@pytest.mark.stress
def test_many_devices_answer_their_own_calls(
    served: EmbeddedBroker, record_property: Callable[[str, object], None]
) -> None:
    """Each of many connected devices answers its own calls and no other's."""
    ids = [f"sim-{number}" for number in range(sized(150, full=1000))]
    replies: queue.SimpleQueue[BrokerMessage] = queue.SimpleQueue()
    with Fleet("127.0.0.1", served.port, ids, WELL) as fleet:
        fleet.start()
        assert fleet.connected == len(ids)
        stop = served.broker.listen("devices/+/up", replies.put)
        for number, device_id in enumerate(ids):
            call = {"name": "self.test.echo", "arguments": {"text": device_id}}
            request = {"jsonrpc": "2.0", "method": "tools/call", "params": call, "id": number}
            payload = json.dumps({"type": "mcp", "payload": request}).encode()
            send_direct_message(served.broker, device_id, f"devices/{device_id}/down", payload)
        answers = {}
        for _ in ids:
            message = replies.get(timeout=CEILING_SECONDS)
            reply = json.loads(message.payload)["payload"]
            answers[message.topic.split("/")[1]] = reply["id"], reply["result"]["content"][0]["text"]
        stop()
    assert replies.empty()
    assert answers == {device_id: (number, device_id) for number, device_id in enumerate(ids)}
    record_property("load", f"{len(ids):,} devices, a call to each at once")
    record_property("outcome", "all answered, each its own call")
