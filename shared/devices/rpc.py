"""JSON-RPC requests to devices, matched with their replies."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from queue import Empty, SimpleQueue
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
from shared.devices.sessions import SessionStore
from shared.platform.telemetry import seconds_left
from shared.rpc.errors import TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from shared.aws.dynamodb import Table
    from shared.devices.registry import RegisteredDevice
    from shared.devices.sessions import DevicePresence
    from shared.rpc.errors import KhoError

_MAX_ANSWERED: Final = 10_000
_WATCH_SECONDS: Final = 1.0

PendingReply = SimpleQueue[RpcReply | RpcFailure | UnreadableReply]


class ConnectionEnded(Exception):
    """The device's connection ended after a request was sent, so that no reply can come."""

    def __init__(self, error: KhoError) -> None:
        super().__init__(error.message)
        self.error = error


class DeviceTransport(Protocol):
    """A transport of messages to and from devices."""

    on_message: Callable[[str, bytes], None]
    """The receiver of a device's id and message; set it before the first subscription."""

    def subscribed(self, device_id: str, deadline: float) -> AbstractContextManager[None]:
        """Receive the device's messages inside the block. Raise Unavailable if no subscription succeeds in time."""

    def send(self, device: RegisteredDevice, message: bytes) -> None:
        """Send once. Raise DEVICE_OFFLINE if the device is known to be disconnected."""


class RpcClient:
    """A client for any number of concurrent requests, each of which gets its own reply."""

    def __init__(self, transport: DeviceTransport, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        """The clock of deadlines."""
        self.dropped = DroppedMessages()
        self.transport = transport
        transport.on_message = self._on_message
        self._pending: dict[tuple[str, int], PendingReply] = {}
        self._answered: OrderedDict[tuple[str, int], bool] = OrderedDict()
        """Recent requests, and whether their replies came in time."""

    def request(  # noqa: PLR0913 - each is a part of the request
        self,
        device: RegisteredDevice,
        session_id: str,
        method: str,
        params: dict[str, Any],
        *,
        deadline: float,
        watch: Callable[[], None] | None = None,
    ) -> Any:
        """Send a request once and return its result. Raise the device's own error, or TimeoutError past `deadline`.

        While it waits, `watch` is called periodically; it raises if no reply can come any more.
        """
        with self.transport.subscribed(device.id, deadline):
            key, pending = self._register(device.id)
            try:
                message = request(session_id, key[1], method, params)
                if len(message) > MAX_MESSAGE_BYTES:
                    raise TooLarge("The call exceeds 128 KiB, the maximum message size of devices.")
                self.transport.send(device, message)
                reply = self._wait(pending, deadline, watch)
            finally:
                self._unregister(key)
                if self.dropped.unreported:
                    self.dropped.count()
        if isinstance(reply, RpcFailure):
            raise errors.device_error(reply.code, message=reply.message)
        if isinstance(reply, UnreadableReply):
            raise errors.unreadable(device.id)
        return reply.result

    def notify(self, device: RegisteredDevice, message: bytes, deadline: float) -> None:
        """Send a message that has no reply, once."""
        with self.transport.subscribed(device.id, deadline):
            self.transport.send(device, message)

    def _register(self, device_id: str) -> tuple[tuple[str, int], PendingReply]:
        pending: PendingReply = SimpleQueue()
        while True:
            key = device_id, secrets.randbelow(LARGEST_ID) + 1
            # setdefault is atomic: each key has one request.
            if key not in self._answered and self._pending.setdefault(key, pending) is pending:
                return key, pending

    def _unregister(self, key: tuple[str, int]) -> None:
        if self._pending.pop(key, None) is not None:
            self._record(key, in_time=False)

    def _wait(
        self, pending: PendingReply, deadline: float, watch: Callable[[], None] | None
    ) -> RpcReply | RpcFailure | UnreadableReply:
        while True:
            left = deadline - self.clock()
            try:
                return pending.get(timeout=max(0.0, min(left, _WATCH_SECONDS) if watch else left))
            except Empty:
                if left <= _WATCH_SECONDS or watch is None:
                    raise TimeoutError from None
                watch()

    def _on_message(self, device_id: str, raw: bytes) -> None:
        """Match a reply with its request. Hellos and notifications are left to the device inbox."""
        message = parse_message(raw)
        if not isinstance(message, RpcReply | RpcFailure | UnreadableReply):
            if isinstance(message, InvalidMessage) and message.kind in ("oversize", "unasked"):
                self.dropped.record(message.kind, device_id)
            return
        key = device_id, message.id
        pending = self._pending.pop(key, None)
        if pending is not None:
            self._record(key, in_time=True)
            pending.put(message)
            return
        in_time = self._answered.get(key)
        self.dropped.record("unasked" if in_time is None else "repeated" if in_time else "late", device_id)

    def _record(self, key: tuple[str, int], *, in_time: bool) -> None:
        # Without a lock, which the broker's thread and hundreds of callers would contend for: each operation is atomic.
        self._answered[key] = in_time
        while len(self._answered) > _MAX_ANSWERED:
            self._answered.popitem(last=False)


def check_connection(table: Table, device: RegisteredDevice, before: DevicePresence | None, sent_at: int) -> None:
    """Raise ConnectionEnded once no reply to a request can come: a device that disconnects forgets its calls."""
    if seconds_left() <= 0:
        return
    presence = SessionStore(table, device.tenant_id, device.id).read().presence
    if presence is not None and presence != before and presence.changed_at >= sent_at:
        raise ConnectionEnded((errors.replaced if presence.connected else errors.connection_lost)(device.id))
