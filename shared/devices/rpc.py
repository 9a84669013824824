"""Requests to devices, and the replies that belong to them."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from typing import TYPE_CHECKING, Any, Final, Protocol

from shared.devices import errors
from shared.devices.dropped_messages import DroppedMessages
from shared.devices.protocol import (
    LARGEST_ID,
    MAX_MESSAGE_BYTES,
    InvalidMessage,
    RpcFailure,
    RpcReply,
    UnreadableReply,
    parse_message,
    request,
)
from shared.rpc.errors import TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from shared.devices.registry import RegisteredDevice

_REMEMBERED: Final = 10_000
_WATCH_SECONDS: Final = 1.0

PendingReply = Future[RpcReply | RpcFailure | UnreadableReply]


class DeviceTransport(Protocol):
    """How messages get to devices and back, whatever carries them."""

    def subscribed(self, device_id: str, deadline: float) -> AbstractContextManager[None]:
        """What the device sends inside is heard; Unavailable where that cannot be had before `deadline`."""

    def send(self, device: RegisteredDevice, message: bytes) -> None:
        """Send once, never twice; DEVICE_OFFLINE where the device is known not to be connected."""


class RpcClient:
    """Asks devices, any number of them at once, and gives each caller its own reply."""

    def __init__(
        self,
        make_line: Callable[[Callable[[str, bytes], None]], DeviceTransport],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.clock = clock
        """Deadlines are moments of this clock."""
        self.dropped = DroppedMessages()
        self._waiting: dict[tuple[str, int], PendingReply] = {}
        self._answered: OrderedDict[tuple[str, int], bool] = OrderedDict()
        """What was asked lately, and whether it was answered in time."""
        self._remembering = threading.Lock()
        self.line = make_line(self._receive)

    def request(  # noqa: PLR0913 - each is a part of the question
        self,
        device: RegisteredDevice,
        session_id: str,
        method: str,
        params: dict[str, Any],
        *,
        deadline: float,
        watch: Callable[[], None] | None = None,
    ) -> Any:
        """The result of one request, sent once, or the device's own error; TimeoutError past `deadline`.

        While it waits, `watch` is called now and then, to raise where no answer can come any more.
        """
        with self.line.subscribed(device.id, deadline):
            key, waiting = self._expect(device.id)
            try:
                message = request(session_id, key[1], method, params)
                if len(message) > MAX_MESSAGE_BYTES:
                    raise TooLarge("The call would pass 128 KiB, which is what a message to a device can hold.")
                self.line.send(device, message)
                reply = self._wait(waiting, deadline, watch)
            finally:
                self._forget(key)
                self.dropped.count()
        if isinstance(reply, RpcFailure):
            raise errors.device_error(reply.code, message=reply.message)
        if isinstance(reply, UnreadableReply):
            raise errors.unreadable(device.id)
        return reply.result

    def notify(self, device: RegisteredDevice, message: bytes, deadline: float) -> None:
        """Send what has no reply, once."""
        with self.line.subscribed(device.id, deadline):
            self.line.send(device, message)

    def _expect(self, device_id: str) -> tuple[tuple[str, int], PendingReply]:
        waiting: PendingReply = Future()
        while True:
            key = device_id, secrets.randbelow(LARGEST_ID) + 1
            # A dict gives a key to one caller alone, without a lock for which hundreds would wait.
            if key not in self._answered and self._waiting.setdefault(key, waiting) is waiting:
                return key, waiting

    def _forget(self, key: tuple[str, int]) -> None:
        if self._waiting.pop(key, None) is not None:
            self._remember(key, in_time=False)

    def _receive(self, device_id: str, raw: bytes) -> None:
        """Hear a message; hellos, notifications and what has no id are the inbox's."""
        message = parse_message(raw)
        if not isinstance(message, RpcReply | RpcFailure | UnreadableReply):
            if isinstance(message, InvalidMessage) and message.kind in ("oversize", "unasked"):
                self.dropped.note(message.kind, device_id)
            return
        key = device_id, message.id
        waiting = self._waiting.pop(key, None)
        if waiting is not None:
            self._remember(key, in_time=True)
            waiting.set_result(message)
            return
        before = self._answered.get(key)
        self.dropped.note("unasked" if before is None else "repeated" if before else "late", device_id)

    def _remember(self, key: tuple[str, int], *, in_time: bool) -> None:
        with self._remembering:
            self._answered[key] = in_time
            while len(self._answered) > _REMEMBERED:
                self._answered.popitem(last=False)

    def _wait(
        self, waiting: PendingReply, deadline: float, watch: Callable[[], None] | None
    ) -> RpcReply | RpcFailure | UnreadableReply:
        while True:
            left = deadline - self.clock()
            try:
                return waiting.result(max(0.0, min(left, _WATCH_SECONDS) if watch else left))
            except NotYet:
                if left <= _WATCH_SECONDS or watch is None:
                    raise TimeoutError from None
                watch()
