"""A client's session in the broker, which may outlive its connection."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infra.local.iot.broker.data_plane_errors import DataPlaneError
from infra.local.iot.mqtt.packets import MQTT_3

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from infra.local.iot.broker.broker import BrokerCounters
    from infra.local.iot.broker.limits import Limits
    from infra.local.iot.broker.messages import BrokerMessage
    from infra.local.iot.broker.outbox import Outbox
    from infra.local.iot.mqtt.packets import SubscriptionRequest


@dataclass(slots=True)
class ClientLink:
    """A connected client's outbox and negotiated limits."""

    outbox: Outbox
    level: int = MQTT_3
    receive_maximum: int = 65_535
    packet_bytes: int | None = None


@dataclass(slots=True)
class _InFlight:
    message: BrokerMessage
    confirmation: asyncio.Future[None] | None = None


class BrokerSession:
    """One client's subscriptions, queued messages and unacknowledged messages."""

    def __init__(
        self,
        client_id: str,
        loop: asyncio.AbstractEventLoop,
        clock: Callable[[], float],
        limits: Limits,
        counters: BrokerCounters,
    ) -> None:
        self.client_id = client_id
        self.subscriptions: dict[str, SubscriptionRequest] = {}
        self.expiry_seconds = 0
        self.expiry_timer: asyncio.TimerHandle | None = None
        self.link: ClientLink | None = None
        self._loop = loop
        self._clock = clock
        self._limits = limits
        self._counters = counters
        self._queue: deque[BrokerMessage] = deque()
        self._unacknowledged: dict[int, _InFlight] = {}
        self._last_id = 0

    def attach(self, link: ClientLink) -> None:
        """Start sending: first unacknowledged messages, then queued ones."""
        self.link = link
        unacknowledged, self._unacknowledged = self._unacknowledged, {}
        self._queue.extendleft(in_flight.message for in_flight in reversed(unacknowledged.values()))
        self.send_queued()

    def detach(self) -> None:
        """Stop sending; pending confirmations of direct messages fail."""
        self.link = None
        for packet_id, in_flight in list(self._unacknowledged.items()):
            if in_flight.confirmation:
                del self._unacknowledged[packet_id]
                if not in_flight.confirmation.done():
                    in_flight.confirmation.set_exception(
                        DataPlaneError("GatewayTimeoutException", "The connection was lost")
                    )

    def receive(self, message: BrokerMessage, request: SubscriptionRequest) -> None:
        """Handle a message that matches a subscription."""
        if request.no_local and message.sender == self.client_id:
            return
        retain = message.retain and request.retain_as_published
        if not (message.qos and request.qos):
            if self.link:
                self._send(self.link, message, retain=retain)
            return
        if self.link or self.expiry_seconds:
            self._enqueue(message)

    def send_retained(self, message: BrokerMessage, qos: int) -> None:
        """Send the retained message of a topic after a subscription to it."""
        if self.link and not (message.qos and qos):
            self._send(self.link, message, retain=True)
        elif self.link:
            self._enqueue(message)

    def send_direct(self, message: BrokerMessage) -> None:
        """Send at QoS 0 without a subscription."""
        if self.link is None or not self._send(self.link, message):
            raise DataPlaneError("ThrottlingException", "The target client does not read its messages fast enough")

    def confirm_direct(self, message: BrokerMessage) -> asyncio.Future[None]:
        """Send at QoS 1 without a subscription. The future completes with the client's acknowledgement."""
        link = self.link
        if link is None or link.outbox.full or self._free_window(link) <= 0:
            raise DataPlaneError("ThrottlingException", "The target client does not read its messages fast enough")
        confirmation: asyncio.Future[None] = self._loop.create_future()
        self._send_numbered(link, message, confirmation)
        return confirmation

    def acknowledge(self, packet_id: int) -> None:
        """Handle the acknowledgement of a message at QoS 1."""
        in_flight = self._unacknowledged.pop(packet_id, None)
        if in_flight and in_flight.confirmation and not in_flight.confirmation.done():
            in_flight.confirmation.set_result(None)
        self.send_queued()

    def _enqueue(self, message: BrokerMessage) -> None:
        if len(self._queue) >= self._limits.queued_messages:
            self._counters.dropped_slow += 1
            return
        self._queue.append(message)
        self.send_queued()

    def send_queued(self) -> None:
        """Send queued messages, as far as the client's window allows."""
        link = self.link
        while link and self._queue and self._free_window(link) > 0 and not link.outbox.full:
            message = self._queue.popleft()
            if message.expired(self._clock()):
                self._counters.expired += 1
            else:
                self._send_numbered(link, message, None)

    def _free_window(self, link: ClientLink) -> int:
        return min(link.receive_maximum, self._limits.unacknowledged) - len(self._unacknowledged)

    def _send_numbered(
        self, link: ClientLink, message: BrokerMessage, confirmation: asyncio.Future[None] | None
    ) -> None:
        packet_id = self._next_id()
        data = message.packet(link.level, self._clock(), qos=1, packet_id=packet_id)
        if link.packet_bytes is not None and len(data) > link.packet_bytes:
            self._counters.dropped_slow += 1
            return
        self._unacknowledged[packet_id] = _InFlight(message, confirmation)
        self._counters.sent += 1
        link.outbox.send(data)

    def _send(self, link: ClientLink, message: BrokerMessage, *, retain: bool = False) -> bool:
        data = message.packet(link.level, self._clock(), retain=retain)
        if (link.packet_bytes is not None and len(data) > link.packet_bytes) or not link.outbox.offer(data):
            self._counters.dropped_slow += 1
            return False
        self._counters.sent += 1
        return True

    def _next_id(self) -> int:
        while True:
            self._last_id = self._last_id % 65_535 + 1
            if self._last_id not in self._unacknowledged:
                return self._last_id
