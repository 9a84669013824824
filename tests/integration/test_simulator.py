"""Simulated devices through the broker: what the real ones do, and what sick ones do to the others."""

from __future__ import annotations

import itertools
import json
import queue
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.simulator.device import Model
from infra.local.simulator.fleet import Fleet
from infra.local.simulator.quirks import FIRMWARE, Quirk
from tests.mqtt import SECONDS, Served, backend, running_broker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from infra.local.broker.messages import Message
    from infra.local.simulator.device import Device


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with running_broker() as running:
        yield running


@dataclass
class Talk:
    """One device, and the backend's side of the talk with it, message by message."""

    served: Served
    fleet: Fleet
    heard: queue.Queue[Message]
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def device(self) -> Device:
        return self.fleet.devices[0]

    def send(self, envelope: Any) -> None:
        """Send the device a message, whole."""
        payload = envelope if isinstance(envelope, bytes) else json.dumps(envelope).encode()
        device_id = self.device.device_id
        self.served.broker.send_direct_message(device_id, f"devices/{device_id}/down", payload)

    def ask(self, method: str, request_id: Any = None, **params: Any) -> Any:
        """Send a request; its id."""
        request_id = next(self.ids) if request_id is None else request_id
        payload = {"jsonrpc": "2.0", "method": method, "params": params, "id": request_id}
        self.send({"session_id": "s", "type": "mcp", "payload": payload})
        return request_id

    def raw(self) -> bytes:
        """The device's next message as it came."""
        return self.heard.get(timeout=SECONDS).payload

    def reply(self) -> Any:
        """The JSON-RPC message in the device's next message."""
        envelope = json.loads(self.raw())
        assert envelope["type"] == "mcp"
        return envelope["payload"]

    def call(self, name: str, **arguments: Any) -> Any:
        """What the device answers to a call."""
        request_id = self.ask("tools/call", name=name, arguments=arguments)
        reply = self.reply()
        assert reply["id"] == request_id
        return reply


@pytest.fixture
def talk(served: Served) -> Callable[..., Any]:
    @contextmanager
    def begin(*quirks: Quirk, plain: bool = False, **about: Any) -> Iterator[Talk]:
        model = Model(frozenset(quirks) | (frozenset() if plain else FIRMWARE), reconnect_seconds=(0.05, 0.1), **about)
        heard: queue.Queue[Message] = queue.Queue()
        stop = served.broker.listen("devices/sim/up", heard.put)
        with Fleet("127.0.0.1", served.port, ["sim"], model) as fleet:
            fleet.start()
            yield Talk(served, fleet, heard)
        stop()

    return begin


def test_the_seeds_transcript_field_for_field(talk: Any) -> None:
    with talk(Quirk.HELLO, plain=True) as it:
        hello = json.loads(it.raw())
        assert (hello["type"], hello["features"]["mcp"], hello["transport"]) == ("hello", True, "udp")
        assert "session_id" not in hello
        udp = {"server": "127.0.0.1", "port": 8888, "key": "0" * 32, "nonce": "1" * 32}
        it.send({"type": "hello", "transport": "udp", "session_id": "abc", "udp": udp})
        vision = {"url": "http://example.com/vision", "token": "t"}
        it.ask("initialize", 1, capabilities={"vision": vision})
        assert json.loads(it.raw()) == {
            "session_id": "abc",
            "type": "mcp",
            "payload": {
                "jsonrpc": "2.0",
                "id": 1,
                "result": {
                    "protocolVersion": "2024-11-05",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "simulated-esp32", "version": "2.4.0"},
                },
            },
        }
        assert it.device.firmware.vision == vision
        it.ask("tools/list", 2, cursor="")
        listed = it.reply()["result"]
        volume = next(tool for tool in listed["tools"] if tool["name"] == "self.audio_speaker.set_volume")
        assert volume["inputSchema"] == {
            "type": "object",
            "properties": {"volume": {"type": "integer", "minimum": 0, "maximum": 100}},
            "required": ["volume"],
        }
        it.ask("tools/call", 3, name="self.audio_speaker.set_volume", arguments={"volume": 50})
        content = {"content": [{"type": "text", "text": "true"}], "isError": False}
        assert it.reply() == {"jsonrpc": "2.0", "id": 3, "result": content}
        it.ask("tools/call", 3, name="self.non_existent_tool", arguments={})
        error = {"code": -32601, "message": "Unknown tool: self.non_existent_tool"}
        assert it.reply() == {"jsonrpc": "2.0", "id": 3, "error": error}
        it.fleet.do(lambda: it.device.notify("notifications/state_changed", newState="idle", oldState="connecting"))
        assert it.reply() == {
            "jsonrpc": "2.0",
            "method": "notifications/state_changed",
            "params": {"newState": "idle", "oldState": "connecting"},
        }


def listed(it: Talk, **params: Any) -> list[list[str]]:
    """The names of each page of the device's tools."""
    pages, cursor = [], ""
    while True:
        it.ask("tools/list", cursor=cursor, **params)
        result = it.reply()["result"]
        pages.append([tool["name"] for tool in result["tools"]])
        cursor = result.get("nextCursor", "")
        if not cursor:
            return pages


def test_51_tools_come_on_five_pages_and_the_owners_on_demand(talk: Any) -> None:
    with talk() as it:
        pages = listed(it)
        names = list(itertools.chain(*pages))
        assert (len(pages), len(names), len(set(names))) == (5, 51, 51)
        assert set(itertools.chain(*listed(it, withUserTools=True))) - set(names) == {
            "self.reboot",
            "self.upgrade_firmware",
        }
        assert it.call("self.reboot")["result"]["isError"] is False
        it.ask("tools/list", cursor="no such tool")
        assert it.reply()["error"] == {"message": "Failed to add tool  because of payload size limit"}


def test_errors_have_no_code_and_may_be_no_json(talk: Any) -> None:
    with talk() as it:
        assert it.call("self.nothing")["error"] == {"message": "Unknown tool: self.nothing"}
        it.ask("tools/call", name="self.test.fail", arguments={"message": 'say "no"\n'})
        raw = it.raw()
        assert b'{"message":"say "no"\n"}' in raw
        with pytest.raises(ValueError, match="delimiter"):
            json.loads(raw)


@pytest.mark.parametrize(
    ("sent", "answered"), [(1.9, 1), (5e9, 2**31 - 1), (-5e9, -(2**31)), (2**31 - 1, 2**31 - 1), (0, 0)]
)
def test_ids_are_cut_to_32_bits(talk: Any, sent: float, answered: int) -> None:
    with talk() as it:
        it.ask("initialize", sent)
        assert it.reply()["id"] == answered


def test_what_the_firmware_does_not_understand_it_drops(talk: Any) -> None:
    request = {"jsonrpc": "2.0", "method": "initialize", "params": {}, "id": 1}
    dropped = [
        request | {"id": "1"},
        request | {"id": None},
        request | {"params": None},
        request | {"params": []},
        request | {"jsonrpc": "1.0"},
        request | {"method": "notifications/initialized"},
        [request],
        "text",
    ]
    with talk() as it:
        for payload in dropped:
            it.send({"type": "mcp", "payload": payload})
        for whole in (b"", b"{", b"\xff", b"[]", b'{"type":"tts"}', b"[" * 5000):
            it.send(whole)
        it.ask("initialize", 7)
        assert it.reply()["id"] == 7
        assert it.device.tally.dropped == len(dropped) + 6


def test_arguments_are_taken_leniently(talk: Any) -> None:
    with talk() as it:
        it.call("self.audio_speaker.set_volume", VOLUME=50.9, unknown=1)
        it.call("self.test.echo", text="a\0b")
        it.call("self.camera.take_photo", question=7)
        assert it.device.firmware.runs == [
            ("self.audio_speaker.set_volume", {"volume": 50}),
            ("self.test.echo", {"text": "a"}),
            ("self.camera.take_photo", {"question": ""}),
        ]
        assert it.call("self.audio_speaker.set_volume", volume="50")["error"]["message"].startswith("Missing valid")
        assert "exceeds" in it.call("self.audio_speaker.set_volume", volume=101)["error"]["message"]
        it.ask("tools/call", name="self.get_device_status", arguments=None)
        assert it.reply()["error"] == {"message": "Invalid arguments"}


def test_calls_run_one_after_the_other_and_lists_overtake_them(talk: Any) -> None:
    with talk() as it:
        started = time.monotonic()
        slow = it.ask("tools/call", name="self.test.sleep", arguments={"milliseconds": 400})
        behind = it.ask("tools/call", name="self.test.echo", arguments={"text": "x"})
        overtaking = it.ask("tools/list", cursor="")
        assert [it.reply()["id"] for _ in range(3)] == [overtaking, slow, behind]
        assert time.monotonic() - started >= 0.4


@pytest.mark.parametrize(("quirk", "least"), [(None, 4_000), (Quirk.LARGE_IMAGES, 100_000)])
def test_images_are_strings_of_json(talk: Any, quirk: Quirk | None, least: int) -> None:
    with talk(*([quirk] if quirk else [])) as it:
        (content,) = it.call("self.camera.take_photo")["result"]["content"]
        assert set(content) == {"type", "image"}
        image = json.loads(content["image"])
        assert (image["type"], image["mimeType"]) == ("image", "image/jpeg")
        assert len(image["data"]) >= least


def test_an_image_that_no_message_can_hold_costs_the_connection(talk: Any, served: Served) -> None:
    with served.heard("$aws/events/presence/disconnected/sim") as gone, talk(Quirk.OVERSIZE_IMAGES) as it:
        it.ask("tools/call", name="self.camera.take_photo", arguments={})
        assert json.loads(gone.get(timeout=SECONDS).payload)["disconnectReason"] == "CLIENT_ERROR"
        until(lambda: it.device.tally.connections == 2 and it.device.connected)


def test_replies_in_reverse_doubled_late_never_strange_and_broken(talk: Any) -> None:
    with talk(Quirk.OUT_OF_ORDER) as it:
        asked = [it.ask("initialize") for _ in range(3)]
        assert [it.reply()["id"] for _ in range(3)] == asked[::-1]
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
        until(lambda: it.device.tally.received == 1)
        assert it.heard.empty()
    with talk(Quirk.STRANGE_IDS) as it:
        asked = it.ask("initialize")
        assert it.reply()["id"] != asked
    with talk(Quirk.BROKEN_JSON) as it:
        it.ask("initialize")
        with pytest.raises(ValueError):  # noqa: PT011 - whatever is wrong with it
            json.loads(it.raw())


def test_lists_that_never_end_are_cut_short_or_have_names_that_collide(talk: Any) -> None:
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
        assert it.call("self.relay_40.set", on=True)["result"]["isError"] is False  # hidden, and there
    with talk(Quirk.COLLIDING_NAMES) as it:
        names = [name.replace(".", "_").replace("-", "_").replace(" ", "_") for name in itertools.chain(*listed(it))]
        assert names.count("self_light_turn_on") == 4


def test_without_an_answer_to_its_hello_a_device_stalls(talk: Any) -> None:
    with talk(Quirk.HELLO) as it:
        assert json.loads(it.raw())["version"] == 3
        for wrong in ({"transport": "websocket"}, {"udp": None}, {"session_id": 7}):
            it.send({"type": "hello", "transport": "udp", "session_id": "abc", "udp": {}} | wrong)
        it.ask("initialize", 5)
        until(lambda: it.device.tally.received == 4)
        assert it.heard.empty()
        assert it.device.tally.hellos_ignored == 3


def test_a_subscribing_device_is_reached_by_publishing(talk: Any, served: Served) -> None:
    with talk(Quirk.SUBSCRIBES) as it, backend(served) as home:
        until(lambda: bool(served.broker.broker.subscriptions("sim")))
        request = {"jsonrpc": "2.0", "method": "initialize", "params": {}, "id": 1}
        home.publish("devices/sim/down", json.dumps({"type": "mcp", "payload": request}).encode())
        assert it.reply()["id"] == 1


def test_a_device_comes_back_by_itself(talk: Any, served: Served) -> None:
    with talk(Quirk.VANISH) as it:
        it.ask("tools/call", name="self.test.echo", arguments={"text": "x"})
        until(lambda: it.device.tally.connections == 2 and it.device.connected)
        it.ask("initialize", 9)
        assert it.reply()["id"] == 9
        assert it.device.firmware.runs == []
        served.broker.end_connection("sim")
        until(lambda: it.device.tally.connections == 3 and it.device.connected)


def test_a_device_that_trespasses_is_thrown_out(talk: Any, served: Served) -> None:
    with served.heard("devices/not-sim/up") as there, served.heard("$aws/events/presence/disconnected/sim") as gone:
        with talk(Quirk.TRESPASSES):
            assert json.loads(gone.get(timeout=SECONDS).payload)["disconnectReason"] == "AUTH_ERROR"
        assert there.empty()


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


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that comes by itself."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
