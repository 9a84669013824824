"""Each quirk of real devices, and its effect on callers: none, or an accurate error."""

from __future__ import annotations

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.iot.simulator.quirks import Quirk
from infra.local.iot.simulator.tools import SimulatedTool as DeviceTool
from infra.local.iot.simulator.tools import standard_tools
from shared.devices.mqtt.data_plane import data_plane
from shared.devices.protocol import LARGEST_ID
from shared.rpc.errors import KhoError, OutOfTime, TooLarge, ToolFailed, Unavailable
from tests.helpers.device_backend import TIMEOUT_MS, DeviceBackend, running_device_backend, timed_out
from tests.helpers.wait import until

if TYPE_CHECKING:
    from collections.abc import Iterator

ECHO = "self.test.echo"


@pytest.fixture(scope="module")
def home() -> Iterator[DeviceBackend]:
    with running_device_backend() as running:
        yield running


def test_first_call_initializes_the_session(home: DeviceBackend) -> None:
    with home.device() as one:
        assert one.text(ECHO, text="đèn 💡") == "đèn 💡"
        assert [each["payload"]["method"] for each in one.down] == ["initialize", *["tools/list"] * 5, "tools/call"]


@pytest.mark.parametrize("message", ["plain", 'say "no"', "two\nlines", 'a "b", "id": 7, {"c', "back\\slash", "ờ"])
def test_firmware_errors_without_code_or_valid_json(home: DeviceBackend, message: str) -> None:
    with home.device() as one:
        error = one.call_error("self.test.fail", message=message)
        assert isinstance(error, ToolFailed)
        assert (error.code, error.details["code"]) == ("DEVICE_ERROR", -32603)
        # A device that turns invalid JSON into JSON has a reader of JSON.
        assert error.message == (message if message != "back\\slash" else error.message)
        assert one.text(ECHO, text="and on") == "and on"


def test_request_ids_are_random_31_bit_integers(home: DeviceBackend) -> None:
    with home.device() as one:
        for _ in range(30):
            one.call(ECHO, text="x")
        ids = [each["payload"]["id"] for each in one.down]
        assert all(type(each) is int and 0 < each <= LARGEST_ID for each in ids)
        assert len(set(ids)) == len(ids)
        assert not any(later - earlier == 1 for earlier, later in pairwise(ids))
        assert max(ids) > 2**24


def test_params_and_arguments_are_always_objects(home: DeviceBackend) -> None:
    with home.device() as one:
        one.call("self.get_device_status")
        assert all(isinstance(each["payload"]["params"], dict) for each in one.down)
        assert one.sent("tools/call")[-1]["params"]["arguments"] == {}


def test_out_of_order_replies_reach_their_callers(home: DeviceBackend) -> None:
    with home.device(Quirk.OUT_OF_ORDER) as one, ThreadPoolExecutor(20) as callers:
        one.call(ECHO, text="first")
        texts = [f"text {number}" for number in range(20)]
        assert list(callers.map(lambda text: one.text(ECHO, text=text), texts)) == texts


def test_sequential_replies_reach_their_callers(home: DeviceBackend) -> None:
    with home.device() as one, ThreadPoolExecutor(5) as callers:
        one.call(ECHO, text="first")
        slow = callers.submit(one.text, "self.test.sleep", milliseconds=60_000)
        until(lambda: len(one.sent("tools/call")) == 2)
        quick = [callers.submit(one.text, ECHO, text=str(number)) for number in range(4)]
        until(lambda: len(one.sent("tools/call")) == 6)
        assert not any(each.done() for each in quick)
        one.fleet.do(one.simulated.finish)
        assert [each.result() for each in (slow, *quick)] == ["60000", "0", "1", "2", "3"]


def test_duplicate_reply_is_ignored(home: DeviceBackend) -> None:
    dropped = home.talks.rpc.dropped.counts
    with home.device(Quirk.DOUBLED) as one:
        before = dropped["repeated"]
        assert one.text(ECHO, text="x") == "x"
        until(lambda: dropped["repeated"] - before == 7)
        assert len(one.runs) == 1


def test_late_reply_is_not_given_to_the_next_caller(home: DeviceBackend) -> None:
    dropped = home.talks.rpc.dropped.counts
    with home.device(reorder_seconds=3600) as one:
        one.call(ECHO, text="ready")
        one.simulated.quirks.add(Quirk.OUT_OF_ORDER)  # the device delays its reply
        before = dropped["late"]
        assert isinstance(timed_out(one, ECHO, lambda: len(one.runs) == 2, text="late"), OutOfTime)
        one.simulated.quirks.discard(Quirk.OUT_OF_ORDER)
        assert one.text(ECHO, text="next") == "next"
        assert dropped["late"] == before
        one.fleet.do(one.simulated.release)
        until(lambda: dropped["late"] - before == 1)
        assert one.text(ECHO, text="after") == "after"


def test_unanswered_call_ends_by_itself(home: DeviceBackend) -> None:
    with home.device(Quirk.NEVER) as one:
        one.tools()
        assert one.call_error(ECHO, timeout_ms=300, text="x").code == "DEVICE_TIMEOUT"


def test_missing_reply_times_out_with_unknown_outcome(home: DeviceBackend) -> None:
    with home.device(Quirk.NEVER) as one:
        one.tools()
        error = timed_out(one, ECHO, lambda: one.runs, text="x")
        assert isinstance(error, OutOfTime)
        assert (error.code, error.details["sent"]) == ("DEVICE_TIMEOUT", True)
        assert "may have happened" in error.message
        assert one.runs == [(ECHO, {"text": "x"})]


def test_silent_device_is_not_called(home: DeviceBackend) -> None:
    with home.device(Quirk.NEVER_AT_ALL) as one:
        error = one.call_error(ECHO, timeout_ms=300, text="x")
        assert (error.code, error.details["sent"]) == ("DEVICE_TIMEOUT", False)
        assert one.sent("tools/call") == []
        one.simulated.quirks.discard(Quirk.NEVER_AT_ALL)
        assert one.text(ECHO, text="awake") == "awake"


def test_reply_with_unknown_id_is_ignored(home: DeviceBackend) -> None:
    dropped = home.talks.rpc.dropped.counts
    with home.device() as one:
        one.call(ECHO, text="ready")
        one.simulated.quirks.add(Quirk.STRANGE_IDS)
        before = dropped["unasked"]
        with ThreadPoolExecutor(1) as caller:
            call = caller.submit(one.text, ECHO, text="x")
            until(lambda: dropped["unasked"] - before == 1)
            assert not call.done()
            (message,) = one.sent("tools/call")[1:]
            one.simulated.quirks.discard(Quirk.STRANGE_IDS)
            result = {"content": [{"type": "text", "text": "its own"}]}
            reply = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
            one.fleet.do(lambda: one.simulated._send(reply))
            assert call.result() == "its own"


def test_truncated_reply_is_reported_immediately(home: DeviceBackend) -> None:
    with home.device() as one:
        one.call(ECHO, text="ready")
        one.simulated.quirks.add(Quirk.BROKEN_JSON)
        error = one.call_error(ECHO, text="x" * 200)
        assert (type(error), error.code) == (ToolFailed, "DEVICE_REPLY_UNREADABLE")


def test_repeating_tool_list_ends_as_incomplete(home: DeviceBackend) -> None:
    with home.device(Quirk.REPEATING_CURSOR) as one:
        assert one.text(ECHO, text="x") == "x"
        pages = one.sent("tools/list")
        assert len(pages) == 2
        session = one.sessions.read().session
        assert session
        catalogue = one.catalogues.find(session)
        assert catalogue
        assert (catalogue.complete, catalogue.problem) == (False, "The list repeats a cursor.")
        assert 0 < len(catalogue.tools) < 51


def test_tools_hidden_by_an_oversized_tool_can_be_called(home: DeviceBackend) -> None:
    with home.device(Quirk.BIG_TOOL) as one:
        catalogue, tools = home.talks.tools(one.device)
        assert (len(tools), catalogue.complete) == (10, False)
        assert "payload size limit" in catalogue.problem
        hidden = [tool.name for tool in one.simulated.firmware.tools if tool.name not in {each.name for each in tools}]
        assert one.text("self.relay_40.set", on=True) == "true"
        assert "self.relay_40.set" in hidden
        error = one.call_error("self.relay_40.set")
        assert (error.code, error.details["code"]) == ("DEVICE_ERROR", -32602)


def test_failed_tool_list_keeps_the_session(home: DeviceBackend) -> None:
    with home.device() as one:
        firmware = one.simulated.firmware
        tools, firmware.tools = firmware.tools, [DeviceTool("self.big", "x" * 9_000, lambda _state, _given: True)]
        error = one.call_error(ECHO, text="x")
        assert (error.code, one.sent("tools/call")) == ("DEVICE_ERROR", [])
        assert one.sessions.read().session  # the session remains
        firmware.tools = tools
        assert one.text(ECHO, text="now") == "now"


def test_empty_tool_list_is_read_again(home: DeviceBackend) -> None:
    with home.device(tools=[]) as one:
        assert one.tools() == []
        session = one.sessions.read().session
        assert session
        assert one.catalogues.find(session) is None
        one.simulated.firmware.tools = standard_tools()
        home.talks._ready.clear()
        assert len(one.tools()) == 51


def test_colliding_sanitized_names_are_disambiguated(home: DeviceBackend) -> None:
    with home.device(Quirk.COLLIDING_NAMES) as one:
        catalogue, _ = home.talks.tools(one.device)
        colliding = [name for name in catalogue.aliases if name.startswith(("self.light", "self_light"))]
        assert len(colliding) == len({catalogue.aliases[name] for name in colliding}) == 4
        for name in colliding:
            one.call(catalogue.aliases[name])
        assert [name for name, _ in one.runs] == colliding


@pytest.mark.parametrize(("quirks", "least"), [((), 4_000), ((Quirk.LARGE_IMAGES,), 100_000)])
def test_image_results(home: DeviceBackend, quirks: tuple[Quirk, ...], least: int) -> None:
    with home.device(*quirks) as one:
        (content,) = one.call("self.camera.take_photo").content
        assert set(content) == {"type", "data", "mimeType"}
        assert (content["type"], content["mimeType"]) == ("image", "image/jpeg")
        assert len(base64.b64decode(content["data"])) >= least * 3 // 4


def test_user_only_tool_arguments_are_validated(home: DeviceBackend) -> None:
    with home.device() as one:
        assert "self.upgrade_firmware" not in [tool.name for tool in one.tools()]
        error = one.call_error("self.upgrade_firmware", link="x")
        assert [each["field"] for each in error.details] == ["arguments.url"]
        assert one.runs == []
        assert all(each["params"]["withUserTools"] is True for each in one.sent("tools/list")[10:])
        own = [tool.name for tool in one.tools(with_user_tools=True) if tool.user_only]
        assert own == ["self.reboot", "self.upgrade_firmware"]
        assert len(one.tools()) == 51


def test_unknown_tool_is_looked_up_once_and_not_called(home: DeviceBackend) -> None:
    with home.device() as one:
        for _ in range(3):
            error = one.call_error("self.nothing", x=1)
            assert (error.code, error.details["code"]) == ("DEVICE_ERROR", -32601)
            assert error.message == "Unknown tool: self.nothing"
        assert one.sent("tools/call") == []
        assert len(one.sent("tools/list")) < 20


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"volume": 101}, "arguments.volume"),
        ({"volume": "50"}, "arguments.volume"),
        ({"volume": 50.9}, "arguments.volume"),
        ({}, "arguments.volume"),
        ({"VOLUME": 101}, "arguments.volume"),
    ],
)
def test_invalid_arguments_are_never_sent(home: DeviceBackend, arguments: dict[str, Any], field: str) -> None:
    with home.device() as one:
        one.tools()
        before = len(one.down)
        error = one.call_error("self.audio_speaker.set_volume", **arguments)
        assert (error.code, [each["field"] for each in error.details]) == ("INVALID_PARAMS", [field])
        assert len(one.down) == before
        assert one.runs == []


def test_invalid_arguments_are_rejected_while_offline(home: DeviceBackend) -> None:
    with home.device() as one:
        one.tools()
        one.fleet.do(one.simulated.stop)
        until(lambda: not one.simulated.connected)
        home.talks._ready.clear()
        assert one.call_error("self.audio_speaker.set_volume", volume=101).code == "INVALID_PARAMS"
        error = one.call_error("self.audio_speaker.set_volume", volume=50)
        assert (type(error), error.code, error.details["sent"]) == (Unavailable, "DEVICE_OFFLINE", False)


def test_oversized_call_is_not_sent(home: DeviceBackend) -> None:
    with home.device() as one:
        one.tools()
        error = one.call_error(ECHO, text="x" * (128 * 1024))
        assert isinstance(error, TooLarge)
        assert one.runs == []


def test_a_subscribing_device_is_reached_by_publishing(home: DeviceBackend) -> None:
    with home.device(Quirk.SUBSCRIBES) as one:
        until(lambda: home.core.broker.broker.subscribers.match(f"devices/{one.id}/down"))
        published = replace(one.device, downlink="publish")
        before = home.core.broker.broker.counters.sent
        assert home.talks.call(published, ECHO, {"text": "x"}, TIMEOUT_MS).content[0]["text"] == "x"
        assert home.core.broker.broker.counters.sent > before
        one.fleet.do(one.simulated.stop)
        until(lambda: not one.simulated.connected)
        plane = data_plane()
        assert plane
        plane._recently_connected.clear()
        with pytest.raises(KhoError) as refusal:
            home.talks.call(published, ECHO, {"text": "x"}, TIMEOUT_MS)
        assert refusal.value.code == "DEVICE_OFFLINE"


def test_oversized_image_is_an_error(home: DeviceBackend) -> None:
    with home.device(Quirk.OVERSIZE_IMAGES) as one:
        one.tools()
        error = timed_out(one, "self.camera.take_photo", lambda: one.simulated.counters.connections == 2)
        assert isinstance(error, OutOfTime)
        assert error.details["sent"] is True
        assert len(one.sent("tools/call")) == 1
        until(lambda: one.simulated.connected and one.simulated.counters.connections == 2)
        assert one.text(ECHO, text="back") == "back"


def test_session_id_sent_by_the_device_is_ignored(home: DeviceBackend) -> None:
    with home.device(plain=True) as one:
        one.simulated.session_id = "someone-elses"
        assert one.text(ECHO, text="x") == "x"
        assert json.loads(one.up[-1])["session_id"] == "someone-elses"
        session = one.sessions.read().session
        assert session
        assert {each["session_id"] for each in one.down} == {session.id}
