"""Answers of a healthy simulated device, equal to the real ones."""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

import pytest

from infra.local.iot.simulator.quirks import Quirk
from tests.helpers.device_conversation import listed_tool_names


def test_contract_transcript_field_by_field(talk: Any) -> None:
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


def test_51_tools_on_five_pages_and_user_only_tools_on_request(talk: Any) -> None:
    with talk() as it:
        pages = listed_tool_names(it)
        names = list(itertools.chain(*pages))
        assert (len(pages), len(names), len(set(names))) == (5, 51, 51)
        assert set(itertools.chain(*listed_tool_names(it, withUserTools=True))) - set(names) == {
            "self.reboot",
            "self.upgrade_firmware",
        }
        it.ask("tools/list", cursor="no such tool")
        assert it.reply()["error"] == {"message": "Failed to add tool  because of payload size limit"}


def test_firmware_errors_without_code_or_valid_json(talk: Any) -> None:
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
def test_request_ids_are_truncated_to_32_bits(talk: Any, sent: float, answered: int) -> None:
    with talk() as it:
        it.ask("initialize", sent)
        assert it.reply()["id"] == answered


def test_firmware_drops_unknown_messages(talk: Any) -> None:
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
        assert it.device.counters.dropped == len(dropped) + 6


def test_firmware_coerces_arguments(talk: Any) -> None:
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


def test_calls_are_sequential_and_lists_overtake_them(talk: Any) -> None:
    with talk() as it:
        slow = it.ask("tools/call", name="self.test.sleep", arguments={"milliseconds": 60_000})
        behind = it.ask("tools/call", name="self.test.echo", arguments={"text": "x"})
        overtaking = it.ask("tools/list", cursor="")
        assert it.reply()["id"] == overtaking
        assert it.device.firmware.runs == []
        it.fleet.do(it.device.finish)
        assert [it.reply()["id"] for _ in range(2)] == [slow, behind]


def test_a_call_takes_as_long_as_its_tool(talk: Any) -> None:
    with talk() as it:
        started = time.monotonic()
        it.call("self.test.sleep", milliseconds=200)
        assert time.monotonic() - started >= 0.2


@pytest.mark.parametrize(("quirk", "least"), [(None, 4_000), (Quirk.LARGE_IMAGES, 100_000)])
def test_images_are_returned_as_json_strings(talk: Any, quirk: Quirk | None, least: int) -> None:
    with talk(*([quirk] if quirk else [])) as it:
        (content,) = it.call("self.camera.take_photo")["result"]["content"]
        assert set(content) == {"type", "image"}
        image = json.loads(content["image"])
        assert (image["type"], image["mimeType"]) == ("image", "image/jpeg")
        assert len(image["data"]) >= least
