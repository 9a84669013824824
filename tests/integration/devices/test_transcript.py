"""The messages between backend and device, field by field as in the device protocol."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.iot.simulator.quirks import Quirk
from shared.platform.clock import now_ms
from tests.helpers.device_backend import DeviceBackend, DeviceUnderTest, reset_settings, running_device_backend
from tests.helpers.wait import until
from workers import device_inbox

if TYPE_CHECKING:
    from collections.abc import Iterator

VISION = {"url": "https://vision.example/explain", "token": "vision-token"}
AUDIO = {"KHO_AUDIO_SERVER": "audio.example", "KHO_AUDIO_PORT": "8888"}


@pytest.fixture(scope="module")
def home() -> Iterator[DeviceBackend]:
    with pytest.MonkeyPatch.context() as settings:
        settings.setenv("KHO_VISION_URL", VISION["url"])
        settings.setenv("KHO_VISION_TOKEN", VISION["token"])
        for name, value in AUDIO.items():
            settings.setenv(name, value)
        with running_device_backend(rules=True) as running:
            yield running
    reset_settings()


def ready(one: DeviceUnderTest) -> None:
    """Wait until a session has begun and the tool list is stored."""
    until(lambda: one.sessions.read().session)


def replies(one: DeviceUnderTest) -> dict[int, Any]:
    """Return the device's replies by id."""
    payloads = [json.loads(raw)["payload"] for raw in one.up if b'"id"' in raw]
    return {each["id"]: each for each in payloads}


def test_handshake_matches_the_contract(home: DeviceBackend) -> None:
    with home.device(plain=True) as one:
        ready(one)
        assert all(set(each) == {"session_id", "type", "payload"} for each in one.down)
        session = one.sessions.read().session
        assert session
        assert {each["session_id"] for each in one.down} == {session.id}
        (initialize,) = one.sent("initialize")
        assert initialize == {
            "jsonrpc": "2.0",
            "method": "initialize",
            "params": {"capabilities": {"vision": VISION}},
            "id": initialize["id"],
        }
        assert replies(one)[initialize["id"]]["result"] == {
            "protocolVersion": "2024-11-05",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "simulated-esp32", "version": "2.4.0"},
        }
        assert one.simulated.firmware.vision == VISION
        assert (session.name, session.version) == ("simulated-esp32", "2.4.0")


def test_51_tools_on_five_pages(home: DeviceBackend) -> None:
    with home.device(plain=True) as one:
        ready(one)
        pages = one.sent("tools/list")
        assert len(pages) == 5
        assert pages[0] == {"jsonrpc": "2.0", "method": "tools/list", "params": {"cursor": ""}, "id": pages[0]["id"]}
        following = [replies(one)[each["id"]]["result"].get("nextCursor", "") for each in pages]
        assert [each["params"] for each in pages[1:]] == [{"cursor": cursor} for cursor in following[:-1]]
        assert following[-1] == ""
        listed = [tool for each in pages for tool in replies(one)[each["id"]]["result"]["tools"]]
        told = [
            {"name": each.name, "description": each.description, "inputSchema": each.input_schema}
            for each in one.tools()
        ]
        assert len(listed) == 51
        assert told == listed


def test_a_call_and_its_result(home: DeviceBackend) -> None:
    with home.device(plain=True) as one:
        ready(one)
        result = one.call("self.audio_speaker.set_volume", volume=50)
        (call,) = one.sent("tools/call")
        assert call == {
            "jsonrpc": "2.0",
            "method": "tools/call",
            "params": {"name": "self.audio_speaker.set_volume", "arguments": {"volume": 50}},
            "id": call["id"],
        }
        assert replies(one)[call["id"]]["result"] == {
            "content": [{"type": "text", "text": "true"}],
            "isError": False,
        }
        assert (result.content, result.isError) == ([{"type": "text", "text": "true"}], False)


def test_device_error_is_forwarded(home: DeviceBackend) -> None:
    with home.device(plain=True) as one:
        ready(one)
        one.call("self.test.echo", text="x")
        firmware = one.simulated.firmware
        firmware.tools = [tool for tool in firmware.tools if tool.name != "self.test.echo"]
        error = one.call_error("self.test.echo", text="x")
        expected = {"code": -32601, "message": "Unknown tool: self.test.echo"}
        assert replies(one)[one.sent("tools/call")[-1]["id"]]["error"] == expected
        assert (error.code, error.details["code"], error.message) == (
            "DEVICE_ERROR",
            expected["code"],
            expected["message"],
        )
        # and the list is read again
        assert "self.test.echo" not in [tool.name for tool in one.tools()]
        assert len(one.sent("tools/list")) == 10


def test_notification_is_stored_and_not_answered(home: DeviceBackend) -> None:
    from device_server.notifications_list import handler

    with home.device() as one:
        ready(one)
        before = len(one.down)
        change = {"newState": "idle", "oldState": "connecting"}
        for number in range(3):
            tell = partial(one.simulated.notify, "notifications/state_changed", **change, number=number)
            one.fleet.do(tell)
        one.fleet.do(lambda: one.simulated.notify("custom_name"))

        def told(**page: Any) -> Any:
            params = {"device_id": one.id, **page}
            caller = {"sub": "t", "roles": ["reader"], "tenant_id": "local"}
            call = {"method": "", "params": params, "caller": caller, "correlation_id": "transcript"}
            return handler(call, None)["result"]

        until(lambda: len(told()["notifications"]) == 4)
        notifications = told()["notifications"]
        assert {each["method"] for each in notifications} == {"notifications/state_changed", "custom_name"}
        assert sorted(each["params"].get("number", -1) for each in notifications) == [-1, 0, 1, 2]
        assert [each["at"] for each in notifications] == sorted((each["at"] for each in notifications), reverse=True)
        first = told(limit=3)
        rest = told(limit=3, cursor=first["next_cursor"])
        assert first["notifications"] + rest["notifications"] == notifications
        assert "next_cursor" not in rest
        assert len(one.down) == before


def test_hello_is_answered_and_starts_a_session(home: DeviceBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_inbox, "_MIN_HELLO_INTERVAL_SECONDS", -1.0)  # each hello begins a session
    with home.device(Quirk.HELLO) as one:
        until(lambda: one.simulated.counters.hellos_accepted == 1)
        hello = next(each for each in one.down if each["type"] == "hello")
        assert hello == {
            "type": "hello",
            "transport": "udp",
            "session_id": hello["session_id"],
            "udp": {
                "server": "audio.example",
                "port": 8888,
                "key": hello["udp"]["key"],
                "nonce": hello["udp"]["nonce"],
            },
        }
        assert (len(bytes.fromhex(hello["udp"]["key"])), len(bytes.fromhex(hello["udp"]["nonce"]))) == (16, 16)

        def begun_by(session_id: str) -> bool:
            session = one.sessions.read().session
            return session is not None and session.id == session_id

        until(lambda: begun_by(hello["session_id"]))
        assert one.text("self.test.echo", text="after hello") == "after hello"
        assert one.down[-1]["session_id"] == hello["session_id"]

        # A repeated hello gets another session, another key and another nonce.
        one.fleet.do(one.simulated.hello)
        until(lambda: one.simulated.counters.hellos_accepted == 2)
        again = [each for each in one.down if each["type"] == "hello"][-1]
        fresh = [(each["session_id"], each["udp"]["key"], each["udp"]["nonce"]) for each in (hello, again)]
        assert len(set(sum(fresh, ()))) == 6
        until(lambda: begun_by(again["session_id"]))


def test_notifications_are_listed_in_the_order_of_their_receipt(
    home: DeviceBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = now_ms()
    monkeypatch.setattr("infra.local.iot.rules.dispatcher.now_ms", lambda: at)
    with home.device() as one:
        ready(one)

        def notify() -> None:
            for number in range(50):
                one.simulated.notify("notifications/state_changed", number=number)

        one.fleet.do(notify)
        until(lambda: len(one.notifications()) == 50)
        assert [each.params for each in one.notifications()] == [{"number": number} for number in reversed(range(50))]


def test_reconnected_device_is_listed_in_its_new_session(home: DeviceBackend) -> None:
    with home.device() as one:
        ready(one)
        first = one.sessions.read()
        one.drop()
        until(lambda: one.simulated.counters.connections == 2)
        until(lambda: not one.sessions.read().ready)
        assert one.sessions.read().session == first.session
        assert len(one.tools()) == 51
        assert one.sessions.read().session != first.session
        assert len(one.sent("initialize")) == 2
        assert len(one.sent("tools/list")) == 10
        assert one.text("self.test.echo", text="again") == "again"


def test_new_firmware_invalidates_cached_tools(home: DeviceBackend) -> None:
    with home.device() as one:
        ready(one)
        firmware = one.simulated.firmware
        firmware.version = "2.5.0"
        firmware.tools = firmware.tools[:5]
        one.drop()
        until(lambda: not one.sessions.read().ready)
        assert len(one.tools()) == 5
        session = one.sessions.read().session
        assert session
        assert session.version == "2.5.0"


def test_tools_are_listed_from_cache(home: DeviceBackend) -> None:
    with home.device() as one:
        ready(one)
        one.fleet.do(one.simulated.stop)
        until(lambda: not one.simulated.connected)
        home.talks._ready.clear()
        assert len(one.tools()) == 51
        assert len(one.sent("tools/list")) == 5
