"""Many devices at one broker, and a sick one among them."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING

from infra.local.simulator.device import Model
from infra.local.simulator.fleet import Fleet
from infra.local.simulator.quirks import FIRMWARE, Quirk
from tests.helpers.wait import until
from tests.mqtt import SECONDS, Served

if TYPE_CHECKING:
    from infra.local.broker.messages import Message


def test_a_flood_of_garbage_leaves_other_devices_unharmed(served: Served) -> None:
    counts = served.broker.broker.counts
    before = counts.dropped_rate
    with Fleet("127.0.0.1", served.port, ["well"]) as well, served.heard("devices/well/up") as heard:
        well.start()
        sick = Model(FIRMWARE | {Quirk.FLOOD}, reconnect_seconds=(0.05, 0.1))
        with Fleet("127.0.0.1", served.port, ["sick"], sick) as flood:
            flood.start()
            until(lambda: counts.dropped_rate - before > 500)
            request = {"jsonrpc": "2.0", "method": "initialize", "params": {}, "id": 1}
            payload = json.dumps({"type": "mcp", "payload": request}).encode()
            waits = []
            for _ in range(50):
                started = time.monotonic()
                served.broker.send_direct_message("well", "devices/well/down", payload)
                assert b'"id":1' in heard.get(timeout=SECONDS).payload
                waits.append(time.monotonic() - started)
            assert flood.connected == 1
    assert sorted(waits)[25] < 0.05


def test_a_thousand_devices_answer_each_its_own(served: Served) -> None:
    ids = [f"sim-{number}" for number in range(1000)]
    replies: dict[str, list[bytes]] = {device_id: [] for device_id in ids}
    missing = threading.Semaphore(0)

    def take(message: Message) -> None:
        replies[message.topic.split("/")[1]].append(message.payload)
        missing.release()

    with Fleet("127.0.0.1", served.port, ids) as fleet:
        fleet.start()
        assert fleet.connected == 1000
        stop = served.broker.listen("devices/+/up", take)
        for number, device_id in enumerate(ids):
            call = {"name": "self.test.echo", "arguments": {"text": device_id}}
            request = {"jsonrpc": "2.0", "method": "tools/call", "params": call, "id": number}
            payload = json.dumps({"type": "mcp", "payload": request}).encode()
            served.broker.send_direct_message(device_id, f"devices/{device_id}/down", payload)
        for _ in ids:
            assert missing.acquire(timeout=SECONDS)
        stop()
    for number, device_id in enumerate(ids):
        (reply,) = (json.loads(each)["payload"] for each in replies[device_id])
        assert (reply["id"], reply["result"]["content"][0]["text"]) == (number, device_id)
