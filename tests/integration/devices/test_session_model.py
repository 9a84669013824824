"""A device's session under random interleavings of what devices, their events and callers do."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import pytest

from shared.devices.device_client import DeviceClient
from shared.devices.handshake import DeviceHello
from shared.devices.registry import RegisteredDevice, devices_table
from shared.devices.rpc import RpcClient
from shared.devices.sessions import DevicePresence, SessionStore
from shared.rpc.errors import KhoError
from tests.helpers.clock import Clock
from tests.helpers.device_board import SLOW, BoardTransport, DeviceBoard
from tests.helpers.size import sized
from tests.helpers.wait import until

if TYPE_CHECKING:
    from collections.abc import Callable

SEEDS: Final = sized(10, full=100)
STEPS: Final = sized(60, full=200)
TIMEOUT_MS: Final = 10_000


class SessionModel:
    """One device, its undelivered events, and two functions with caches of their own."""

    def __init__(self, tenant: str, seed: int, clock: Clock) -> None:
        self.random = random.Random(seed)
        self.clock = clock
        self.counts: Counter[str] = Counter()
        self.device = RegisteredDevice(f"board-{seed}", tenant, "", "direct", "")
        self.board = DeviceBoard(self.device.id, clock)
        self.board.on_restart = self.reconnect
        self.store = SessionStore(devices_table(), tenant, self.device.id)
        self.functions = [
            DeviceClient(devices_table(), RpcClient(BoardTransport(self.board), clock), lambda _: None)
            for _ in range(2)
        ]
        self.events: list[DevicePresence | DeviceHello] = []
        self.connections = 0
        self.slow_call: tuple[str, Future[Any]] | None = None
        self.caller = ThreadPoolExecutor(1)
        self.operations: Final = {
            self.connect: 4,
            self.lose_connection: 1,
            self.restart: 2,
            self.restart_amid_requests: 1,
            self.hello: 1,
            self.repeat_reply: 1,
            self.deliver_event: 4,
            self.deliver_all_events: 2,
            self.start_session_of_rebuilt_firmware: 5,
            self.wait: 1,
            self.list_tools: 8,
            self.call_with_newest_schema: 5,
            self.call_newest_tool: 3,
            self.call_tool_of_older_build: 2,
            self.echo: 2,
            self.begin_slow_call: 2,
            self.end_slow_call: 2,
        }

    def run(self, steps: int) -> None:
        """Perform random operations, each a moment after the one before: no two events have the same time."""
        for _ in range(steps):
            self.clock.advance(0.01)
            (operation,) = self.random.choices(list(self.operations), list(self.operations.values()))
            operation()
        self.end_slow_call()
        self.caller.shutdown()

    @property
    def function(self) -> DeviceClient:
        """Return one of the two functions."""
        return self.random.choice(self.functions)

    # The device

    def connect(self) -> None:
        if not self.board.connected:
            self.connections += 1
            self.board.connected = True
            self.report_presence()

    def lose_connection(self) -> None:
        if self.board.connected:
            self.board.connected = False
            self.report_presence()

    def restart(self) -> None:
        if self.board.connected:
            self.board.restart(rebuilt=self.flip())

    def restart_amid_requests(self) -> None:
        self.board.restarting = self.random.randint(1, 4), self.flip(), self.flip()

    def hello(self) -> None:
        if self.board.connected:
            self.events.append(DeviceHello(f"hello-{self.clock():.3f}", self.clock.milliseconds()))

    def repeat_reply(self) -> None:
        self.board.repeat()

    def reconnect(self) -> None:
        """Report the two events of a restart."""
        self.lose_connection()
        self.clock.advance(1)
        self.connect()

    def report_presence(self) -> None:
        connection, connected = str(self.connections), self.board.connected
        self.events.append(DevicePresence(connected, connection, self.clock.milliseconds(), self.connections))

    # The functions that events invoke

    def deliver_event(self) -> None:
        """Deliver one of the oldest events: they arrive in any order."""
        if self.events:
            self.handle_event(self.events.pop(self.random.randrange(min(4, len(self.events)))))

    def deliver_all_events(self) -> None:
        while self.events:
            self.handle_event(self.events.pop(0))

    def start_session_of_rebuilt_firmware(self) -> None:
        if self.board.connected:
            self.board.restart(rebuilt=True)
            self.deliver_all_events()

    def handle_event(self, event: DevicePresence | DeviceHello) -> None:
        """Start a session as the functions of the rules do."""
        hello = event if isinstance(event, DeviceHello) else None
        if isinstance(event, DevicePresence) and not (self.store.record_presence(event) and event.connected):
            return
        before = self.store.read().session
        try:
            if hello:
                self.function.handshake.start_session(self.device, self.clock() + 12, hello)
            else:
                self.function.handshake.start_first_session(self.device, self.clock() + 12)
        except KhoError:  # as for the functions, the next call starts the session
            return
        session = self.store.read().session
        assert session
        if session.id not in self.board.builds:  # the hello's id for a session that exists
            assert before
            self.board.builds[session.id] = self.board.builds[before.id]

    # Callers

    def wait(self) -> None:
        self.clock.advance(self.random.choice([1, 11, 61]))

    def list_tools(self) -> None:
        with_user_tools = self.flip()
        tools = self.undisturbed(lambda: self.function.tools(self.device, with_user_tools=with_user_tools)[1])
        if tools is None or self.is_offline_error(tools):
            return
        builds = [int(each.name.rpartition("_")[2]) for each in tools if each.name.startswith("self.only_")]
        builds += [each.input_schema["properties"]["number"]["maximum"] for each in tools if each.name == "self.count"]
        self.counts["lists"] += 1
        assert min(builds) >= self.session_build()

    def call_with_newest_schema(self) -> None:
        number = self.board.build
        outcome = self.call("self.count", number=number)
        if isinstance(outcome, KhoError) and outcome.code == "INVALID_PARAMS":
            self.counts["refusals"] += 1
            assert self.session_build() < number
        else:
            self.assert_result(outcome, str(number))

    def call_newest_tool(self) -> None:
        build = self.board.build
        outcome = self.call(f"self.only_{build}")
        if isinstance(outcome, KhoError) and outcome.code == "DEVICE_ERROR":
            self.counts["refusals"] += 1
            assert self.session_build() < build
        else:
            self.assert_result(outcome, "true")

    def call_tool_of_older_build(self) -> None:
        build = self.random.randint(0, self.board.build)
        outcome = self.call(f"self.only_{build}")
        if build == self.board.build or outcome is None:
            return
        assert isinstance(outcome, KhoError)
        if outcome.code == "DEVICE_ERROR":
            assert outcome.details["code"] == -32601
        else:
            assert self.is_offline_error(outcome)

    def echo(self) -> None:
        text = f"text at {self.clock():.3f}"
        self.assert_result(self.call("self.echo", text=text), text)

    def begin_slow_call(self) -> None:
        if self.slow_call is None:
            text = f"{SLOW} at {self.clock():.3f}"
            call = self.caller.submit(self.function.call, self.device, "self.echo", {"text": text}, TIMEOUT_MS)
            self.slow_call = text, call
            until(lambda: self.board.held or call.done())

    def end_slow_call(self) -> None:
        """Deliver the held reply in time or late, once or twice. The call gets its own reply, or an error."""
        if self.slow_call is None:
            return
        text, call = self.slow_call
        self.slow_call = None
        if self.flip():
            self.clock.advance(TIMEOUT_MS / 1000)
        for reply in self.board.held * self.random.randint(1, 2):
            self.board.deliver(reply)
        self.board.held.clear()
        self.clock.advance(TIMEOUT_MS / 1000)
        error = call.exception()
        if isinstance(error, KhoError):
            self.counts["lost"] += 1
            assert error.code in ("DEVICE_TIMEOUT", "SESSION_REPLACED", "DEVICE_OFFLINE"), error
        else:
            assert call.result().content == [{"type": "text", "text": text}]

    # Outcomes

    def flip(self) -> bool:
        return self.random.random() < 0.5

    def call(self, name: str, **arguments: Any) -> Any:
        """Return the text of a call's result, or its error; None if the device restarted meanwhile."""
        self.counts["calls"] += 1
        outcome = self.undisturbed(lambda: self.function.call(self.device, name, arguments, TIMEOUT_MS))
        return outcome if isinstance(outcome, KhoError | None) else outcome.content[0]["text"]

    def undisturbed(self, operation: Callable[[], Any]) -> Any:
        """Return the outcome of an operation, or its error; None if the device restarted meanwhile."""
        restarts = self.board.restarts
        outcome: Any
        try:
            outcome = operation()
        except KhoError as error:
            outcome = error
        return outcome if restarts == self.board.restarts else None

    def assert_result(self, outcome: Any, text: str) -> None:
        assert outcome in (None, text) or self.is_offline_error(outcome), outcome

    def is_offline_error(self, outcome: Any) -> bool:
        """Return True for the error of a device that is not connected, and fail for any other error."""
        assert not isinstance(outcome, KhoError) or outcome.code == "DEVICE_OFFLINE", outcome
        return isinstance(outcome, KhoError) and not self.board.connected

    def session_build(self) -> int:
        """Return the build with which the current session began."""
        session = self.store.read().session
        return self.board.builds[session.id] if session else -1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the clock of sessions, which only the test moves. Callers look often whether it has moved."""
    clock = Clock()
    for module in ("device_client", "handshake", "sessions"):
        monkeypatch.setattr(f"shared.devices.{module}.now_ms", clock.milliseconds)
    monkeypatch.setattr("shared.devices.rpc._WATCH_SECONDS", 0.01)
    return clock


@pytest.mark.stress
def test_no_caller_sees_a_catalogue_older_than_its_session(
    tenant: str, clock: Clock, record_property: Callable[[str, object], None]
) -> None:
    """No caller sees tools of before a device's session, however restarts, rebuilt firmware, events and calls meet."""
    counts: Counter[str] = Counter()
    for seed in range(SEEDS):
        model = SessionModel(tenant, seed, clock)
        try:
            model.run(STEPS)
        except AssertionError as error:
            raise AssertionError(f"with seed {seed}: {error}") from error
        counts += model.counts
    record_property("load", f"{SEEDS:,} random histories of {STEPS} steps, each of one device and two functions")
    record_property(
        "outcome",
        f"{counts['lists']:,} lists and {counts['calls']:,} calls, {counts['refusals']:,} of them refused; none by a "
        f"list of before the session",
    )
    assert min(counts[each] for each in ("lists", "calls", "refusals", "lost")) > 0
