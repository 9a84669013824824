"""One network connection: fair reading, timeouts, authentication and shutdown."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Final

from infra.local.iot.broker.authorization import ClientIdentity
from infra.local.iot.broker.connect import connect_error, negotiate
from infra.local.iot.broker.outbox import Outbox
from infra.local.iot.broker.packet_handler import PacketHandler
from infra.local.iot.broker.presence import DisconnectReason, PresenceRecord
from infra.local.iot.mqtt.decoding import decode
from infra.local.iot.mqtt.encoding import encode
from infra.local.iot.mqtt.framing import Framer
from infra.local.iot.mqtt.packets import MQTT_3, MQTT_5, Connack, Connect, Disconnect, Kind, Packet
from infra.local.iot.mqtt.reason_codes import CONNACK_3, CONNACK_3_UNAVAILABLE, MalformedPacket, ReasonCode
from shared.rpc.errors import KhoError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.local.iot.broker.broker import Broker
    from infra.local.iot.broker.messages import BrokerMessage
    from infra.local.iot.mqtt.packets import Will

_CONNECT: Final = Kind.CONNECT << 4
_PACKETS_PER_BATCH: Final = 128
"""The packets that one client may have processed before others get their turn."""
_PAUSE_SECONDS: Final = 0.05
"""The time for which reading pauses after a client exceeded its publish rate."""
_LINGER_SECONDS: Final = 2.0
"""The time that a rejected client has to read the last packets."""


class BrokerConnection(asyncio.Protocol):
    """The protocol of one client's connection. Its subscriptions end with it."""

    transport: asyncio.Transport
    presence: PresenceRecord
    _outbox: Outbox

    def __init__(self, broker: Broker) -> None:
        self.client = ClientIdentity("")
        self.subscriptions: set[str] = set()
        self.will: Will | None = None
        self._broker = broker
        self._loop = broker.loop
        self._framer = Framer(broker.limits.packet_bytes)
        self._frames: Iterator[tuple[int, bytes]] = iter(())
        self.level = MQTT_3
        self._authentication: asyncio.Task[None] | None = None
        self._handler: PacketHandler | None = None
        self._packet_bytes: int | None = None
        self._started = False
        self._ended = False
        self._received_at = self._loop.time()
        self._timeout_seconds = broker.limits.connect_seconds
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection and start the timeout for its CONNECT."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._outbox = Outbox(transport, self._loop, self._broker.limits.outbound_bytes, self._process)
        if not self._broker.register(self):
            self._ended = True
            transport.abort()
            return
        self._schedule_timeout()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Tell the broker, unless the connection was ended by it or by the client."""
        self._finish(DisconnectReason.CONNECTION_LOST)
        self._broker.unregister(self)

    def pause_writing(self) -> None:
        """Throttle a client that does not read: its outbox pauses, and reading stops after the current batch."""
        self._outbox.pause()

    def resume_writing(self) -> None:
        """Resume a client that reads again."""
        self._outbox.resume()

    def data_received(self, data: bytes) -> None:
        """Process received bytes."""
        if not self._started and data[0] != _CONNECT:
            self.end(ReasonCode.PROTOCOL_ERROR, DisconnectReason.CLIENT_ERROR)
            return
        self._started = True
        self._received_at = self._loop.time()
        self._frames = self._framer.feed(data)
        self._process()

    def receive(self, message: BrokerMessage) -> bool:
        """Send a message. Return False if the client does not take it now."""
        if not self.takes(message):
            self._broker.counters.dropped_slow += 1
            return False
        self._outbox.send(message.packet(self.level))
        self._broker.counters.sent += 1
        return True

    def takes(self, message: BrokerMessage) -> bool:
        """Return False if the client reads too slowly, or takes no packet of this size."""
        fits = self._packet_bytes is None or len(message.packet(self.level)) <= self._packet_bytes
        return fits and not self._outbox.full

    def send(self, packet: Packet) -> None:
        """Send a packet."""
        self._outbox.send(encode(packet, self.level))

    def end(self, code: ReasonCode, reason: DisconnectReason) -> None:
        """End the connection from this side, with a reason in MQTT 5."""
        if self._ended:
            return
        if self._handler and self.level == MQTT_5:
            self.send(Disconnect(code))
        self._finish(reason)
        self._loop.call_later(_LINGER_SECONDS, self.transport.abort)

    def close(self, *, with_will: bool) -> None:
        """End the connection after the client's DISCONNECT."""
        if not with_will:
            self.will = None
        self._finish(DisconnectReason.CLIENT_INITIATED_DISCONNECT)

    def _process(self) -> None:
        """Process packets until none is left, the client must wait, or other clients get their turn."""
        dropped_before = self._broker.counters.dropped_rate
        try:
            more = self._process_batch(self._broker.clock())
        except MalformedPacket as error:
            if not self._handler and error.reason is ReasonCode.UNSUPPORTED_PROTOCOL_VERSION:
                self.send(Connack(CONNACK_3[error.reason]))
            self.end(error.reason, DisconnectReason.CLIENT_ERROR)
            return
        if self._ended or self._authentication:
            return
        if self._outbox.full:  # this continues once it has drained
            self.transport.pause_reading()
        elif dropped_before != self._broker.counters.dropped_rate:
            self.transport.pause_reading()
            self._loop.call_later(_PAUSE_SECONDS, self._process)
        elif more:
            self.transport.pause_reading()
            self._loop.call_soon(self._process)
        else:
            self.transport.resume_reading()

    def _process_batch(self, now: float) -> bool:
        """Process a batch of packets. Return True if there may be more."""
        for _ in range(_PACKETS_PER_BATCH):
            if self._ended or self._authentication:
                return False
            frame = next(self._frames, None)
            if frame is None:
                return False
            packet = decode(frame[0], frame[1], self.level)
            if self._handler:
                self._handler.handle(packet, now)
            elif isinstance(packet, Connect):
                self.transport.pause_reading()
                self._authentication = self._loop.create_task(self._authenticate(packet))
            else:
                raise MalformedPacket("the first packet is not a CONNECT", ReasonCode.PROTOCOL_ERROR)
        return True

    async def _authenticate(self, connect: Connect) -> None:
        """Authenticate the client and send its CONNACK."""
        self.level = connect.level
        limits = self._broker.limits
        peer = self.transport.get_extra_info("peername") or ("", 0)
        client_id = connect.client_id or f"assigned-{secrets.token_hex(8)}"
        self.client = ClientIdentity(client_id, connect.user_name, connect.password)
        reason = connect_error(connect, limits)
        try:
            if reason is None and not await self._broker.may_connect(self, connect):
                self._broker.counters.refused += 1
                reason = ReasonCode.NOT_AUTHORIZED
        except KhoError:
            reason = ReasonCode.SERVER_UNAVAILABLE
        self._authentication = None
        if self._ended:
            return
        if reason is not None:
            self.send(Connack(reason if self.level == MQTT_5 else CONNACK_3.get(reason, CONNACK_3_UNAVAILABLE)))
            self.end(reason, DisconnectReason.AUTH_ERROR)
            return
        granted = negotiate(connect, limits, client_id)
        keepalive = granted.server_keepalive or connect.keepalive
        self._received_at, self._timeout_seconds = self._loop.time(), keepalive * 1.5
        self._schedule_timeout()
        self.will = connect.will
        self._packet_bytes = connect.properties.maximum_packet_size if connect.properties else None
        self.presence = PresenceRecord(client_id, keepalive, peer[0])
        self._handler = PacketHandler(self._broker, self)
        self.send(Connack(properties=granted))
        self._broker.attach(self)
        self._process()

    def _finish(self, reason: DisconnectReason) -> None:
        if self._ended:
            return
        self._ended = True
        if self._timer:
            self._timer.cancel()
        if self._authentication:
            self._authentication.cancel()
        if self._handler:
            self._broker.detach(self, reason)
        self._outbox.flush()
        self.transport.close()

    def _schedule_timeout(self) -> None:
        """Schedule the check of the receive timeout."""
        if self._timer:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._received_at + self._timeout_seconds, self._check_timeout)

    def _check_timeout(self) -> None:
        if self._handler is None:
            self.end(ReasonCode.UNSPECIFIED, DisconnectReason.CLIENT_ERROR)
        elif self._loop.time() < self._received_at + self._timeout_seconds:
            self._schedule_timeout()
        else:
            self.end(ReasonCode.KEEP_ALIVE_TIMEOUT, DisconnectReason.MQTT_KEEP_ALIVE_TIMEOUT)
