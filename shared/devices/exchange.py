"""Requests to devices, and the replies that belong to them."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from typing import TYPE_CHECKING, Any, Final, Protocol

from shared.devices import refusals
from shared.devices.dropped import Dropped
from shared.devices.protocol import (
    LARGEST_ID,
    MAX_MESSAGE_BYTES,
    Failure,
    Junk,
    Reply,
    Unreadable,
    read,
    request,
)
from shared.rpc.errors import TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from shared.devices.registry import Device

_REMEMBERED: Final = 10_000
_WATCH_SECONDS: Final = 1.0

Waiting = Future[Reply | Failure | Unreadable]


class Line(Protocol):
    """How messages get to devices and back, whatever carries them."""

    def listening(self, device_id: str, deadline: float) -> AbstractContextManager[None]:
        """What the device sends inside is heard; Unavailable where that cannot be had before `deadline`."""

    def send(self, device: Device, message: bytes) -> None:
        """Send once, never twice; DEVICE_OFFLINE where the device is known not to be connected."""


class Exchange:
    """Asks devices, any number of them at once, and gives each caller its own reply."""

    def __init__(
        self, make_line: Callable[[Callable[[str, bytes], None]], Line], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.clock = clock
        """Deadlines are moments of this clock."""
        self.dropped = Dropped()
        self._waiting: dict[tuple[str, int], Waiting] = {}
        self._answered: OrderedDict[tuple[str, int], bool] = OrderedDict()
        """What was asked lately, and whether it was answered in time."""
        self._remembering = threading.Lock()
        self.line = make_line(self._take)

    def ask(  # noqa: PLR0913 - each is a part of the question
        self,
        device: Device,
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
        with self.line.listening(device.id, deadline):
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
        if isinstance(reply, Failure):
            raise refusals.said_no(reply.code, message=reply.message)
        if isinstance(reply, Unreadable):
            raise refusals.unreadable(device.id)
        return reply.result

    def tell(self, device: Device, message: bytes, deadline: float) -> None:
        """Send what has no reply, once."""
        with self.line.listening(device.id, deadline):
            self.line.send(device, message)

    def _expect(self, device_id: str) -> tuple[tuple[str, int], Waiting]:
        waiting: Waiting = Future()
        while True:
            key = device_id, secrets.randbelow(LARGEST_ID) + 1
            # A dict gives a key to one caller alone, without a lock for which hundreds would wait.
            if key not in self._answered and self._waiting.setdefault(key, waiting) is waiting:
                return key, waiting

    def _forget(self, key: tuple[str, int]) -> None:
        if self._waiting.pop(key, None) is not None:
            self._remember(key, in_time=False)

    def _take(self, device_id: str, raw: bytes) -> None:
        """Hear a message; hellos, notifications and what has no id are the inbox's."""
        message = read(raw)
        if not isinstance(message, Reply | Failure | Unreadable):
            if isinstance(message, Junk) and message.kind in ("oversize", "unasked"):
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
        self, waiting: Waiting, deadline: float, watch: Callable[[], None] | None
    ) -> Reply | Failure | Unreadable:
        while True:
            left = deadline - self.clock()
            try:
                return waiting.result(max(0.0, min(left, _WATCH_SECONDS) if watch else left))
            except NotYet:
                if left <= _WATCH_SECONDS or watch is None:
                    raise TimeoutError from None
                watch()
