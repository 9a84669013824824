"""A fleet that comes back at once: what its functions do then, and what they leave to the next call."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from infra.local.functions import Functions
from infra.local.iot.rules import dispatcher
from infra.local.iot.simulator.device import DeviceModel
from infra.local.iot.simulator.fleet import Fleet
from infra.local.iot.simulator.quirks import FIRMWARE
from infra.local.iot.simulator.tools import SimulatedTool, SimulatedToolError, ToolArgument
from shared.aws.dynamodb import Keys
from shared.devices.registry import devices_table, registry
from shared.devices.sessions import DeviceState, read_all
from tests.helpers.device_backend import TIMEOUT_MS, running_device_backend
from tests.helpers.size import sized
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.local.iot.simulator.device import SimulatedDevice

BOARDS = sized(40, full=1000)
AT_ONCE = 4
_GROUP = 50
ECHO = SimulatedTool("self.echo", "", lambda _, given: given["text"], (ToolArgument("text", "string"),))


def _fail(_state: Any, _given: Any) -> Any:
    raise SimulatedToolError("no")


class FunctionRuns:
    """The runs of each function, and how many of one were in progress together."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.most_at_once: Counter[str] = Counter()
        self.runs: Counter[str] = Counter()
        self._at_once: Counter[str] = Counter()
        self._changing = threading.Lock()
        run = Functions.__call__

        def counted(functions: Functions, name: str, payload: bytes) -> bytes:
            with self._changing:
                self.runs[name] += 1
                self._at_once[name] += 1
                self.most_at_once[name] = max(self.most_at_once[name], self._at_once[name])
            try:
                return run(functions, name, payload)
            finally:
                with self._changing:
                    self._at_once[name] -= 1

        patch.setattr(Functions, "__call__", counted)


def count_handshakes(fleet: Fleet) -> Counter[str]:
    """Return a counter of the handshakes that each device answers from now on."""
    handshakes: Counter[str] = Counter()

    def overhear(device: SimulatedDevice) -> None:
        take = device._on_message

        def heard(topic: str, payload: bytes) -> None:
            handshakes[device.device_id] += b'"initialize"' in payload
            take(topic, payload)

        device._on_message = heard  # type: ignore[method-assign,assignment]  # the device still receives the message

    for each in fleet.devices:
        overhear(each)
    return handshakes


def states(ids: list[str]) -> dict[str, DeviceState]:
    return read_all(devices_table(), "local", ids)


def wait_for_all(ids: list[str], condition: Callable[[str, DeviceState], bool]) -> None:
    """Wait until the condition holds for each device, as long as some more get there."""
    for first in range(0, len(ids), _GROUP):
        group = ids[first : first + _GROUP]
        until(lambda group=group: all(condition(*each) for each in states(group).items()))  # type: ignore[misc]


def is_connected(state: DeviceState) -> bool:
    return bool(state.presence and state.presence.connected)


@pytest.mark.stress
def test_fleet_that_comes_back_is_connected_at_once_and_wakes_with_its_calls(
    monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    """A fleet that comes back at once is connected by a few functions; each handshake waits for a call."""
    monkeypatch.setattr(dispatcher, "_WORKERS", AT_ONCE)
    runs = FunctionRuns(monkeypatch)
    ids = [f"storm-{uuid4().hex[:8]}-{number}" for number in range(BOARDS)]
    model = DeviceModel(
        FIRMWARE,
        tools=[ECHO],
        reconnect_seconds=(0.05, 0.1),
        connect_seconds=CEILING_SECONDS,
        hello_seconds=10 * CEILING_SECONDS,
    )
    with running_device_backend(rules=True) as home, Fleet("127.0.0.1", home.port, ids, model) as fleet:
        fleet.start()
        wait_for_all(ids, lambda _, state: state.session is not None and is_connected(state))
        before = states(ids)
        handshakes = count_handshakes(fleet)
        runs.runs.clear()
        away, back = ids[: BOARDS // 4], ids[BOARDS // 4 :]

        def lose_power() -> None:
            for each in fleet.devices:
                (each.stop if each.device_id in away else each.vanish)()

        fleet.do(lose_power)

        wait_for_all(back, lambda each, state: is_connected(state) and state.presence != before[each].presence)
        wait_for_all(away, lambda _, state: not is_connected(state))
        assert handshakes.total() == 0
        assert {each: state.session for each, state in states(ids).items()} == {
            each: state.session for each, state in before.items()
        }
        assert runs.most_at_once["workers-device_presence"] <= AT_ONCE
        presence_runs = runs.runs["workers-device_presence"]
        assert presence_runs <= 2 * BOARDS

        def call(device_id: str) -> Any:
            device = registry().require("local", device_id)
            home.talks._forget(device)  # as any other process
            return home.talks.call(device, "self.echo", {"text": device_id}, TIMEOUT_MS).content[0]["text"]

        with ThreadPoolExecutor(8) as callers:
            assert list(callers.map(call, back)) == back
        assert handshakes == Counter(dict.fromkeys(back, 1))
    record_property("load", f"{BOARDS:,} boards lose power together, three quarters come back, {AT_ONCE} runs at once")
    record_property(
        "outcome",
        f"{presence_runs:,} runs for their connections, no handshake; one each with the first call afterwards",
    )


def test_board_with_other_firmware_has_its_session_at_once() -> None:
    with running_device_backend(rules=True) as home, home.device(tools=[ECHO]) as one:
        until(lambda: one.sessions.read().session)
        one.sessions.record_firmware("another version than it reported")
        one.drop()
        until(lambda: len(one.sent("initialize")) == 2)
        until(lambda: (session := one.sessions.read().session) and not session.is_obsolete)


def test_board_that_fails_at_a_tool_has_its_session_with_the_next_call() -> None:
    """A process that knows the former session asks again: a board that restarted has lost what the session gave it."""
    failing = SimulatedTool("self.fail", "", _fail)
    with running_device_backend(rules=True) as home, home.device(tools=[ECHO, failing]) as one:
        until(lambda: one.sessions.read().session)
        assert one.text("self.echo", text="x") == "x"
        one.drop()
        until(lambda: not one.sessions.read().ready)
        assert one.call_error("self.fail").code == "DEVICE_ERROR"
        assert one.text("self.echo", text="x") == "x"
        assert len(one.sent("initialize")) == 2


def test_new_board_has_its_session_at_once() -> None:
    """A board whose tools are not known is asked for them when it connects."""
    with running_device_backend(rules=True) as home, home.device(tools=[ECHO]) as one:
        until(lambda: one.sessions.read().session)
        assert len(one.sent("initialize")) == 1
        before = one.sessions.read().session
        devices_table().delete_all(
            (item["pk"], item["sk"])
            for page in one.catalogues._table.query(one.catalogues._partition, Keys.beginning("catalogue#"))
            for item in page
        )
        one.drop()
        until(lambda: one.sessions.read().session != before)
