"""A session's catalogue, and the time of a device's last reply."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from device_server import devices_get, devices_list
from infra.local.iot.simulator.quirks import Quirk
from infra.local.iot.simulator.tools import SimulatedTool, ToolArgument
from shared.devices import sessions
from shared.devices.registry import devices_table
from shared.devices.sessions import DevicePresence, DeviceSession, SessionStore
from shared.platform.clock import iso_time, now_ms
from shared.rpc.caller import LOCAL
from tests.helpers.device_backend import DeviceBackend, DeviceUnderTest, running_device_backend, timed_out
from tests.helpers.wait import until

if TYPE_CHECKING:
    from collections.abc import Iterator

ECHO = "self.test.echo"


@pytest.fixture(scope="module")
def home() -> Iterator[DeviceBackend]:
    with running_device_backend(rules=True) as running:
        yield running


def led(maximum: int) -> SimulatedTool:
    level = ToolArgument("level", "integer", minimum=0, maximum=maximum)
    return SimulatedTool("self.led.set", "Set the LED.", lambda _state, given: given["level"], (level,))


def named(name: str) -> SimulatedTool:
    return SimulatedTool(name, "Blink.", lambda _state, _given: True)


def session_id(one: DeviceUnderTest) -> str:
    session = one.sessions.read().session
    return session.id if session else ""


def connection_of(one: DeviceUnderTest) -> str:
    """Return the id of the device's connection, or an empty string while there is none."""
    presence = one.sessions.read().presence
    return presence.connection if presence and presence.connected else ""


def test_rebuilt_firmware_of_the_same_version_has_its_own_tools(home: DeviceBackend) -> None:
    with home.device(tools=[led(100), named("self.led.fade")]) as one:
        until(lambda: session_id(one))
        assert one.call_error("self.led.set", level=200).code == "INVALID_PARAMS"
        before, connection = session_id(one), connection_of(one)
        version = one.simulated.firmware.version
        one.fleet.do(partial(one.simulated.install, version, [led(255), named("self.led.blink")]))
        one.fleet.do(one.simulated.restart)
        until(lambda: connection_of(one) not in ("", connection))
        assert session_id(one) == before
        assert one.text("self.led.set", level=200) == "200"
        assert one.call_error("self.led.set", level=300).code == "INVALID_PARAMS"
        assert [tool.name for tool in one.tools()] == ["self.led.set", "self.led.blink"]


def shown(one: DeviceUnderTest) -> Any:
    """Return the time of the last reply as both methods show it."""
    call = {"method": "", "params": {"device_id": one.id}, "caller": LOCAL.record(), "correlation_id": "sessions"}
    seen = devices_get.handler(call, None)["result"].get("last_answered_at")
    listed = devices_list.handler(call | {"params": {"limit": 1000}}, None)["result"]["devices"]
    assert [each.get("last_answered_at") for each in listed if each["device_id"] == one.id] == [seen]
    return seen


def test_last_reply_is_shown(home: DeviceBackend) -> None:
    with home.device() as one:
        until(lambda: session_id(one))
        assert shown(one)
        before = iso_time(now_ms() / 1000)
        assert one.text(ECHO, text="x") == "x"
        assert shown(one) >= before


def test_device_that_hangs_shows_when_it_last_answered(home: DeviceBackend) -> None:
    with home.device() as one:
        until(lambda: session_id(one))
        one.call(ECHO, text="x")
        home.talks._answered.clear()
        before = shown(one)
        one.simulated.quirks.add(Quirk.NEVER_AT_ALL)
        assert timed_out(one, ECHO, lambda: len(one.sent("tools/call")) == 2, text="x").code == "DEVICE_TIMEOUT"
        assert one.simulated.connected
        assert shown(one) == before
        one.simulated.quirks.remove(Quirk.NEVER_AT_ALL)
        assert one.call_error("self.test.fail", message="no").code == "DEVICE_ERROR"
        assert shown(one) > before


def test_last_reply_is_stored_at_most_every_ten_seconds(home: DeviceBackend) -> None:
    with home.device() as one:
        until(lambda: session_id(one))
        home.talks._answered.clear()
        one.call(ECHO, text="x")
        before = shown(one)
        one.call(ECHO, text="x")
        assert shown(one) == before


DAYS_MS = 2 * 86_400_000


@pytest.fixture
def board(tenant: str) -> SessionStore:
    return SessionStore(devices_table(), tenant, "board")


@pytest.fixture(params=[DAYS_MS, -DAYS_MS], ids=["ahead", "behind"])
def wrong_clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the milliseconds by which the clock is wrong. The test sets it right by `monkeypatch.undo`."""
    offset: int = request.param
    wrong = now_ms() + offset
    monkeypatch.setattr(sessions, "now_ms", lambda: wrong)
    return offset


def presence(connected: bool, connection: str, at: int, version: int = 0) -> DevicePresence:
    return DevicePresence(connected, connection, at, version)


def test_connection_after_a_wrong_clock_is_recorded(
    board: SessionStore, wrong_clock: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although a broker that restarted counts from 0 again. What was connected before is known to be gone."""
    assert board.record_presence(presence(True, "before", now_ms() + wrong_clock, 3))
    monkeypatch.undo()
    assert board.record_presence(presence(True, "after", now_ms()))
    assert not board.record_presence(presence(True, "late", now_ms() - 20_000))
    assert board.record_presence(presence(False, "after", now_ms(), 1))
    recorded = board.read().presence
    assert recorded
    assert (recorded.connection, recorded.connected) == ("after", False)


def test_session_of_a_clock_that_was_ahead_is_not_taken_for_that_of_a_later_connection(board: SessionStore) -> None:
    assert board.claim("handshake", 1)
    assert board.start("handshake", DeviceSession("s" * 32, "lamp", "1.0", now_ms() + DAYS_MS, "before"))
    assert board.record_presence(presence(True, "after", now_ms()))
    assert not board.read().ready
    assert board.claim("next", 1)
    assert board.start("next", DeviceSession("t" * 32, "lamp", "1.0", now_ms(), "after"))
    assert board.read().ready


def test_handshake_hello_and_reply_of_a_wrong_clock_keep_nobody_waiting(
    board: SessionStore, wrong_clock: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is killed in a handshake leaves its claim behind."""
    assert board.claim("killed", 12)
    assert not board.claim("other", 12)
    assert board.accept_hello(10)
    assert not board.accept_hello(10)
    board.record_answer(now_ms() + wrong_clock)
    monkeypatch.undo()
    assert board.claim("other", 12)
    assert board.accept_hello(10)
    at = now_ms()
    board.record_answer(at)
    assert board.read().answered_at == at


def test_list_of_a_clock_that_was_ahead_is_read_again_for_an_unknown_tool(home: DeviceBackend) -> None:
    with home.device() as one:
        until(lambda: session_id(one))
        assert one.text(ECHO, text="x") == "x"
        session = one.sessions.read().session
        assert session
        catalogue = one.catalogues.find(session)
        assert catalogue
        read_at = time.time() + DAYS_MS / 1000
        one.catalogues.put(replace(catalogue, tools=catalogue.tools[:1], with_user_tools=True, read_at=read_at))
        home.talks._tool_lists._cache.clear()
        home.talks._ready.clear()
        assert one.text(ECHO, text="x") == "x"
