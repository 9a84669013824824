"""One network connection: its bytes in turns, its patience, its beginning and its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from infra.local.broker.authorization import ClientIdentity
from infra.local.broker.connect import connect_error, negotiate
from infra.local.broker.outbox import Outbox
from infra.local.broker.packet_handler import PacketHandler
from infra.local.broker.presence import DisconnectReason
from infra.local.broker.sessions import ClientLink
from infra.local.mqtt.decoding import decode
from infra.local.mqtt.encoding import encode
from infra.local.mqtt.framing import Framer
from infra.local.mqtt.packets import MQTT_3, MQTT_5, Connack, Connect, Disconnect, Kind, Packet
from infra.local.mqtt.reason_codes import CONNACK_3, MalformedPacket, ReasonCode
from shared.rpc.errors import KhoError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.local.broker.broker import Broker
    from infra.local.broker.presence import PresenceRecord
    from infra.local.broker.sessions import BrokerSession
    from infra.local.mqtt.packets import Will

_CONNECT: Final = Kind.CONNECT << 4
_PACKETS_A_TURN: Final = 128
"""After so many packets of one client the others have their turn."""
_PAUSE_SECONDS: Final = 0.05
"""A client that published too often is not read from for so long."""
_LINGER_SECONDS: Final = 2.0
"""What was sent last has so long to be read by a client that is turned away."""


class BrokerConnection(asyncio.Protocol):
    """One client, from the first byte to the last."""

    transport: asyncio.Transport
    session: BrokerSession
    visit: PresenceRecord
    _outbox: Outbox

    def __init__(self, broker: Broker) -> None:
        self.client = ClientIdentity("")
        self.will: Will | None = None
        self._broker = broker
        self._loop = broker.loop
        self._framer = Framer(broker.limits.packet_bytes)
        self._frames: Iterator[tuple[int, bytes]] = iter(())
        self.level = MQTT_3
        self._checking: asyncio.Task[None] | None = None
        self._dialogue: PacketHandler | None = None
        self._begun = False
        self._ended = False
        self._heard_at = self._loop.time()
        self._patience = broker.limits.connect_seconds
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; a client has so long to say who it is."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._outbox = Outbox(transport, self._broker.flusher, self._broker.limits.outbound_bytes, self._go_on)
        if not self._broker.enter(self):
            self._ended = True
            transport.abort()
            return
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        """Tell the broker, where the connection was not ended by it or by the client."""
        self._leave(DisconnectReason.CONNECTION_LOST)
        self._broker.exit(self)

    def pause_writing(self) -> None:
        """Heed that the client does not read: it is sent less, and after its next turn not read from."""
        self._outbox.pause()

    def resume_writing(self) -> None:
        """Go on with a client that reads again."""
        self._outbox.resume()

    def data_received(self, data: bytes) -> None:
        """Read what came."""
        if not self._begun and data[0] != _CONNECT:
            self.end(ReasonCode.PROTOCOL_ERROR, DisconnectReason.CLIENT_ERROR)
            return
        self._begun = True
        self._heard_at = self._loop.time()
        self._frames = self._framer.feed(data)
        self._work()

    def send(self, packet: Packet) -> None:
        """Answer."""
        self._outbox.send(encode(packet, self.level))

    def end(self, reason: ReasonCode, leaving: DisconnectReason) -> None:
        """End the connection from this side, saying why where MQTT has words for it."""
        if self._ended:
            return
        if self._dialogue and self.level == MQTT_5:
            self.send(Disconnect(reason))
        self._leave(leaving)
        self._outbox.flush()
        self.transport.close()
        self._loop.call_later(_LINGER_SECONDS, self.transport.abort)

    def close(self, *, with_will: bool) -> None:
        """End the connection as the client wishes."""
        if not with_will:
            self.will = None
        self._leave(DisconnectReason.CLIENT_INITIATED_DISCONNECT)
        self._outbox.flush()
        self.transport.close()

    def _go_on(self) -> None:
        """Send and read on, now that what was in the way is written."""
        if self._dialogue and not self._ended:
            self.session.send_queued()
        self._work()

    def _work(self) -> None:
        """Handle packets until there are no more, the client must wait, or the others have their turn."""
        dropped = self._broker.counts.dropped_rate
        try:
            more = self._turn(self._broker.clock())
        except MalformedPacket as error:
            self._broker.counts.malformed += 1
            if not self._dialogue and error.reason is ReasonCode.UNSUPPORTED_PROTOCOL_VERSION:
                self.send(Connack(CONNACK_3[error.reason]))
            self.end(error.reason, DisconnectReason.CLIENT_ERROR)
            return
        if self._ended or self._checking:
            return
        if self._outbox.full:  # `_go_on` comes when it no longer is
            self.transport.pause_reading()
        elif dropped != self._broker.counts.dropped_rate:
            self.transport.pause_reading()
            self._loop.call_later(_PAUSE_SECONDS, self._work)
        elif more:
            self.transport.pause_reading()
            self._loop.call_soon(self._work)
        else:
            self.transport.resume_reading()

    def _turn(self, now: float) -> bool:
        """Handle some packets; whether there may be more."""
        for _ in range(_PACKETS_A_TURN):
            if self._ended or self._checking:
                return False
            frame = next(self._frames, None)
            if frame is None:
                return False
            packet = decode(frame[0], frame[1], self.level)
            if self._dialogue:
                self._dialogue.handle(packet, now)
            elif isinstance(packet, Connect):
                self.transport.pause_reading()
                self._checking = self._loop.create_task(self._admit(packet))
            else:
                raise MalformedPacket("the first packet is not a CONNECT", ReasonCode.PROTOCOL_ERROR)
        return True

    async def _admit(self, connect: Connect) -> None:
        """Let the client in, or tell it why not."""
        self.level = connect.level
        limits = self._broker.limits
        peer = self.transport.get_extra_info("peername") or ("", 0)
        client_id = connect.client_id or self._broker.new_client_id()
        self.client = ClientIdentity(client_id, connect.user_name, connect.password, peer[0])
        reason = connect_error(connect, limits)
        try:
            if reason is None and not await self._broker.admits(self.client, connect.will):
                self._broker.counts.refused += 1
                reason = ReasonCode.NOT_AUTHORIZED
        except KhoError:
            reason = ReasonCode.SERVER_UNAVAILABLE
        self._checking = None
        if self._ended:
            return
        if reason is not None:
            self.send(
                Connack(
                    reason if self.level == MQTT_5 else CONNACK_3.get(reason, CONNACK_3[ReasonCode.SERVER_UNAVAILABLE])
                )
            )
            self.end(reason, DisconnectReason.AUTH_ERROR)
            return
        terms = negotiate(connect, limits, client_id)
        self._heard_at, self._patience = self._loop.time(), terms.keepalive * 1.5
        self._watch()
        self.will = connect.will
        present = self._broker.open(self, client_id, connect, terms)
        self._dialogue = PacketHandler(self._broker, self, self._broker.clock())
        self.send(Connack(0, present, terms.properties))
        self.session.attach(ClientLink(self._outbox, self.level, terms.receive_maximum, terms.packet_bytes))
        self._work()

    def _leave(self, leaving: DisconnectReason) -> None:
        if self._ended:
            return
        self._ended = True
        if self._timer:
            self._timer.cancel()
        if self._checking:
            self._checking.cancel()
        if self._dialogue:
            self._broker.leave(self, leaving)

    def _watch(self) -> None:
        """End the connection once nothing was heard for too long."""
        if self._timer:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._heard_at + self._patience, self._check)

    def _check(self) -> None:
        if self._dialogue is None:
            self.end(ReasonCode.UNSPECIFIED, DisconnectReason.CLIENT_ERROR)
        elif self._loop.time() < self._heard_at + self._patience:
            self._watch()
        else:
            self.end(ReasonCode.KEEP_ALIVE_TIMEOUT, DisconnectReason.MQTT_KEEP_ALIVE_TIMEOUT)
