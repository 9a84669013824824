"""A device for tests of its session: the simulated firmware without a broker, and restarts amid requests."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from infra.local.iot.simulator.firmware import Firmware, FirmwareCall, FirmwareReply
from infra.local.iot.simulator.quirks import FIRMWARE
from infra.local.iot.simulator.tools import SimulatedTool, ToolArgument
from shared.devices import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shared.devices.registry import RegisteredDevice
    from tests.helpers.clock import Clock

SLOW = "slow"
"""The beginning of texts whose echo is held back."""
_LONGER_THAN_ANY_DEADLINE = 60.0
_HALF_A_PAGE = "x" * 5_000


def tools_of_build(build: int) -> list[SimulatedTool]:
    """Return the tools of a build, on two pages: an echo, one with another schema in each build, and one of its own."""
    number = ToolArgument("number", "integer", minimum=0, maximum=build)
    return [
        SimulatedTool("self.echo", "", lambda _, given: given["text"], (ToolArgument("text", "string"),)),
        SimulatedTool("self.count", _HALF_A_PAGE, lambda _, given: given["number"], (number,)),
        SimulatedTool(f"self.only_{build}", _HALF_A_PAGE, lambda _state, _given: True),
    ]


@dataclass
class DeviceBoard:
    """A board that answers in the caller's thread. All of its builds have the same name and version."""

    device_id: str
    clock: Clock
    build: int = 0
    connected: bool = False
    restarts: int = 0
    held: list[str] = field(default_factory=list)
    builds: dict[str, int] = field(default_factory=dict)
    """The build that answered `initialize`, by the session id of the request."""

    def __post_init__(self) -> None:
        self.transports: list[BoardTransport] = []
        self.restarting: tuple[int, bool, bool] | None = None
        self.on_restart: Callable[[], None] = lambda: None
        self._firmware = Firmware("board", "2.4.2", tools_of_build(self.build), FIRMWARE)
        self._last = "{}"

    def restart(self, *, rebuilt: bool) -> None:
        """Restart, with a new build if `rebuilt`. Replies that are held back are lost."""
        self.restarts += 1
        self.restarting = None
        self.held.clear()
        self.build += rebuilt
        self._firmware = Firmware("board", "2.4.2", tools_of_build(self.build), FIRMWARE)
        self.on_restart()

    def receive(self, message: bytes) -> None:
        """Handle a request and reply, unless a restart loses the reply."""
        if not self.connected:
            raise errors.offline(self.device_id)
        envelope = json.loads(message)
        payload = envelope["payload"]
        action = self._firmware.handle(payload)
        if payload["method"] == "initialize":
            self.builds[envelope["session_id"]] = self.build
        reply = self._firmware.run(action) if isinstance(action, FirmwareCall) else action
        assert isinstance(reply, FirmwareReply)
        is_last, rebuilt, loses_reply = self._next_restart()
        if is_last and (loses_reply or _is_slow(payload)):
            self.restart(rebuilt=rebuilt)
            self.clock.advance(_LONGER_THAN_ANY_DEADLINE)
            return
        if _is_slow(payload):
            self.held.append(reply.text)
        else:
            self.deliver(reply.text)
        if is_last:
            self.restart(rebuilt=rebuilt)

    def deliver(self, text: str) -> None:
        """Publish a reply to every function."""
        self._last = text
        for transport in self.transports:
            transport.on_message(self.device_id, f'{{"session_id":"","type":"mcp","payload":{text}}}'.encode())

    def repeat(self) -> None:
        """Publish the last reply again."""
        self.deliver(self._last)

    def _next_restart(self) -> tuple[bool, bool, bool]:
        """Count down to a restart. Return whether it is due, whether it is of a new build, and loses the reply."""
        if self.restarting is None:
            return False, False, False
        after, rebuilt, loses_reply = self.restarting
        self.restarting = after - 1, rebuilt, loses_reply
        return after <= 1, rebuilt, loses_reply


class BoardTransport:
    """The transport of one function to a board."""

    on_message: Callable[[str, bytes], None]

    def __init__(self, board: DeviceBoard) -> None:
        self._board = board
        board.transports.append(self)

    @contextmanager
    def subscribed(self, _device_id: str, _deadline: float) -> Iterator[None]:
        """Receive all replies."""
        yield

    def send(self, _device: RegisteredDevice, message: bytes) -> None:
        """Pass a request to the board."""
        self._board.receive(message)


def _is_slow(payload: dict[str, Any]) -> bool:
    arguments = payload["params"].get("arguments", {})
    return isinstance(arguments, dict) and str(arguments.get("text", "")).startswith(SLOW)
