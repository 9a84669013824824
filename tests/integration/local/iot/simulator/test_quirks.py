"""Devices that are faulty, variant, or offline for a while."""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

import pytest

from infra.local.iot.simulator.quirks import Quirk
from tests.helpers.device_conversation import listed_tool_names
from tests.helpers.mqtt_client import EmbeddedBroker, backend
from tests.helpers.wait import CEILING_SECONDS, until


def test_oversized_image_disconnects_the_device(talk: Any, served: EmbeddedBroker) -> None:
    with served.heard("$aws/events/presence/disconnected/sim") as gone, talk(Quirk.OVERSIZE_IMAGES) as it:
        it.ask("tools/call", name="self.camera.take_photo", arguments={})
        assert json.loads(gone.get(timeout=CEILING_SECONDS).payload)["disconnectReason"] == "CLIENT_ERROR"
        until(lambda: it.device.counters.connections == 2 and it.device.connected)


def test_reply_quirks(talk: Any) -> None:
    with talk(Quirk.OUT_OF_ORDER, reorder_seconds=3600) as it:
        request_ids = [it.ask("initialize") for _ in range(3)]
        until(lambda: it.device.counters.received == 3)
        assert it.heard.empty()
        it.fleet.do(it.device.release)
        assert [it.reply()["id"] for _ in range(3)] == request_ids[::-1]
    with talk(Quirk.DOUBLED) as it:
        assert it.call("self.test.echo", text="x") == it.reply()
        assert len(it.device.firmware.runs) == 1
    with talk(Quirk.LATE, late_seconds=0.2) as it:
        started = time.monotonic()
        it.call("self.test.echo", text="x")
        assert time.monotonic() - started >= 0.2
    with talk(Quirk.NEVER) as it:
        it.ask("tools/call", name="self.test.echo", arguments={"text": "x"})
        it.ask("initialize", 77)
        assert it.reply()["id"] == 77
        assert len(it.device.firmware.runs) == 1
    with talk(Quirk.NEVER_AT_ALL) as it:
        it.ask("initialize")
        until(lambda: it.device.counters.received == 1)
        assert it.heard.empty()
    with talk(Quirk.STRANGE_IDS) as it:
        request_ids = it.ask("initialize")
        assert it.reply()["id"] != request_ids
    with talk(Quirk.BROKEN_JSON) as it:
        it.ask("initialize")
        with pytest.raises(ValueError):  # noqa: PT011 - any error of decoding
            json.loads(it.raw())


def test_tool_list_quirks(talk: Any) -> None:
    with talk(Quirk.REPEATING_CURSOR) as it:
        it.ask("tools/list", cursor="")
        cursor = it.reply()["result"]["nextCursor"]
        for _ in range(2):
            it.ask("tools/list", cursor=cursor)
            assert it.reply()["result"]["nextCursor"] == cursor
    with talk(Quirk.BIG_TOOL) as it:
        it.ask("tools/list", cursor="")
        result = it.reply()["result"]
        assert (len(result["tools"]), result["nextCursor"]) == (10, "self.manual.read")
        it.ask("tools/list", cursor="self.manual.read")
        assert "payload size limit" in it.reply()["error"]["message"]
        assert it.call("self.relay_40.set", on=True)["result"]["isError"] is False  # hidden but callable
    with talk(Quirk.COLLIDING_NAMES) as it:
        names = [
            name.replace(".", "_").replace("-", "_").replace(" ", "_")
            for name in itertools.chain(*listed_tool_names(it))
        ]
        assert names.count("self_light_turn_on") == 4


def test_device_stalls_without_hello_response(talk: Any) -> None:
    with talk(Quirk.HELLO) as it:
        assert json.loads(it.raw())["version"] == 3
        for wrong in ({"transport": "websocket"}, {"udp": None}, {"session_id": 7}):
            it.send({"type": "hello", "transport": "udp", "session_id": "abc", "udp": {}} | wrong)
        it.ask("initialize", 5)
        until(lambda: it.device.counters.received == 4)
        assert it.heard.empty()
        assert it.device.counters.hellos_ignored == 3


def test_a_subscribing_device_is_reached_by_publishing(talk: Any, served: EmbeddedBroker) -> None:
    with talk(Quirk.SUBSCRIBES) as it, backend(served) as home:
        until(lambda: bool(served.broker.broker.subscribers.match("devices/sim/down")))
        request = {"jsonrpc": "2.0", "method": "initialize", "params": {}, "id": 1}
        home.publish("devices/sim/down", json.dumps({"type": "mcp", "payload": request}).encode())
        assert it.reply()["id"] == 1


def test_device_reconnects(talk: Any, served: EmbeddedBroker) -> None:
    with talk(Quirk.VANISH) as it:
        it.ask("tools/call", name="self.test.echo", arguments={"text": "x"})
        until(lambda: it.device.counters.connections == 2 and it.device.connected)
        it.ask("initialize", 9)
        assert it.reply()["id"] == 9
        assert it.device.firmware.runs == []
        served.broker.call(lambda broker: broker.end_connection("sim"))
        until(lambda: it.device.counters.connections == 3 and it.device.connected)


def test_device_on_foreign_topic_is_disconnected(talk: Any, served: EmbeddedBroker) -> None:
    with served.heard("devices/not-sim/up") as there, served.heard("$aws/events/presence/disconnected/sim") as gone:
        with talk(Quirk.TRESPASSES):
            assert json.loads(gone.get(timeout=CEILING_SECONDS).payload)["disconnectReason"] == "AUTH_ERROR"
        assert there.empty()
