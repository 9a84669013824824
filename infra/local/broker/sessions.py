"""What the broker knows of one client, connected or for a while not."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infra.local.broker.direct_message import ClientBusy, DeliveryUnconfirmed
from infra.local.mqtt.packets import MQTT_3

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from infra.local.broker.counters import BrokerCounters
    from infra.local.broker.limits import Limits
    from infra.local.broker.messages import BrokerMessage
    from infra.local.broker.outbox import Outbox
    from infra.local.mqtt.packets import SubscriptionRequest


@dataclass(slots=True)
class ClientLink:
    """How a connected client is reached."""

    outbox: Outbox
    level: int = MQTT_3
    receive_maximum: int = 65_535
    packet_bytes: int | None = None


@dataclass(slots=True)
class _Unacknowledged:
    message: BrokerMessage
    confirmation: asyncio.Future[None] | None = None


class BrokerSession:
    """One client's subscriptions, and what it has still to be sent or to acknowledge."""

    def __init__(
        self,
        client_id: str,
        loop: asyncio.AbstractEventLoop,
        clock: Callable[[], float],
        limits: Limits,
        counts: BrokerCounters,
    ) -> None:
        self.client_id = client_id
        self.subscriptions: dict[str, SubscriptionRequest] = {}
        self.expiry_seconds = 0
        self.expiring: asyncio.TimerHandle | None = None
        self.line: ClientLink | None = None
        self._loop = loop
        self._clock = clock
        self._limits = limits
        self._counts = counts
        self._queue: deque[BrokerMessage] = deque()
        self._unacknowledged: dict[int, _Unacknowledged] = {}
        self._last_id = 0

    def attach(self, line: ClientLink) -> None:
        """Begin to send: first again what was not acknowledged, then what has waited."""
        self.line = line
        again, self._unacknowledged = self._unacknowledged, {}
        self._queue.extendleft(waiting.message for waiting in reversed(again.values()))
        self._send_queued()

    def detach(self) -> None:
        """Stop sending; direct messages that wait for the client will not be confirmed."""
        self.line = None
        for packet_id, waiting in list(self._unacknowledged.items()):
            if waiting.confirmation:
                del self._unacknowledged[packet_id]
                if not waiting.confirmation.done():
                    waiting.confirmation.set_exception(DeliveryUnconfirmed("The connection was lost"))

    def receive(self, message: BrokerMessage, request: SubscriptionRequest) -> None:
        """Take what a subscription matches."""
        if request.no_local and message.sender == self.client_id:
            return
        retain = message.retain and request.retain_as_published
        if not (message.qos and request.qos):
            if self.line:
                self._send(self.line, message, retain=retain)
            return
        if self.line or self.expiry_seconds:
            self._enqueue(message)

    def send_retained(self, message: BrokerMessage, qos: int) -> None:
        """Send the retained message of a topic that was just subscribed to."""
        if self.line and not (message.qos and qos):
            self._send(self.line, message, retain=True)
        elif self.line:
            self._enqueue(message)

    def send_direct(self, message: BrokerMessage) -> None:
        """Send at QoS 0 without any subscription."""
        if self.line is None or not self._send(self.line, message):
            raise ClientBusy("The target client does not take its messages fast enough")

    def confirm_direct(self, message: BrokerMessage) -> asyncio.Future[None]:
        """Send at QoS 1 without any subscription; what is returned is done with the client's acknowledgement."""
        line = self.line
        if line is None or line.outbox.full or self._window(line) <= 0:
            raise ClientBusy("The target client does not take its messages fast enough")
        confirmation: asyncio.Future[None] = self._loop.create_future()
        self._send_numbered(line, message, confirmation)
        return confirmation

    def acknowledge(self, packet_id: int) -> None:
        """Hear that a message at QoS 1 has arrived."""
        waiting = self._unacknowledged.pop(packet_id, None)
        if waiting and waiting.confirmation and not waiting.confirmation.done():
            waiting.confirmation.set_result(None)
        self._send_queued()

    def send_queued(self) -> None:
        """Go on, now that the client reads again."""
        self._send_queued()

    def _enqueue(self, message: BrokerMessage) -> None:
        if len(self._queue) >= self._limits.queued_messages:
            self._counts.dropped_slow += 1
            return
        self._queue.append(message)
        self._send_queued()

    def _send_queued(self) -> None:
        line = self.line
        while line and self._queue and self._window(line) > 0 and not line.outbox.full:
            message = self._queue.popleft()
            if message.expired(self._clock()):
                self._counts.expired += 1
            else:
                self._send_numbered(line, message, None)

    def _window(self, line: ClientLink) -> int:
        return min(line.receive_maximum, self._limits.unacknowledged) - len(self._unacknowledged)

    def _send_numbered(
        self, line: ClientLink, message: BrokerMessage, confirmation: asyncio.Future[None] | None
    ) -> None:
        packet_id = self._next_id()
        data = message.packet(line.level, self._clock(), qos=1, packet_id=packet_id)
        if line.packet_bytes is not None and len(data) > line.packet_bytes:
            self._counts.dropped_slow += 1
            return
        self._unacknowledged[packet_id] = _Unacknowledged(message, confirmation)
        self._counts.sent += 1
        line.outbox.send(data)

    def _send(self, line: ClientLink, message: BrokerMessage, *, retain: bool = False) -> bool:
        data = message.packet(line.level, self._clock(), retain=retain)
        if (line.packet_bytes is not None and len(data) > line.packet_bytes) or not line.outbox.offer(data):
            self._counts.dropped_slow += 1
            return False
        self._counts.sent += 1
        return True

    def _next_id(self) -> int:
        while True:
            self._last_id = self._last_id % 65_535 + 1
            if self._last_id not in self._unacknowledged:
                return self._last_id
