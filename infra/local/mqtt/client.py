"""A lean MQTT 3.1.1 client, of which one loop holds thousands."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from infra.local.mqtt.decoding import decode
from infra.local.mqtt.encoding import PINGREQ, encode, publish
from infra.local.mqtt.framing import Framer
from infra.local.mqtt.packets import (
    MQTT_3,
    Connack,
    Connect,
    Disconnect,
    Puback,
    Publish,
    Subscribe,
    SubscriptionRequest,
)
from infra.local.mqtt.reason_codes import MalformedPacket

if TYPE_CHECKING:
    from collections.abc import Callable

_LARGEST: Final = 512 * 1024


class ConnectRefused(Exception):
    """The broker does not let the client in."""


class MqttClient(asyncio.Protocol):
    """One connection; it answers what must be answered and hands on what it is sent."""

    def __init__(self, connect: Connect, take: Callable[[str, bytes], None], lost: Callable[[], None]) -> None:
        self._connect = connect
        self._take = take
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._framer = Framer(_LARGEST)
        self._transport: asyncio.Transport | None = None
        self._ping: asyncio.TimerHandle | None = None
        self._admitted: asyncio.Future[None] = self._loop.create_future()
        self._let_in = False

    @property
    def connected(self) -> bool:
        """Whether what is published is sent."""
        return self._transport is not None and not self._transport.is_closing() and self._let_in

    async def admitted(self, seconds: float) -> None:
        """Wait until the broker lets the client in."""
        await asyncio.wait_for(asyncio.shield(self._admitted), seconds)

    def publish(self, topic: str, payload: bytes) -> None:
        """Send a message at QoS 0; while there is no connection it is lost, as it is with a real device."""
        if self._transport:
            self._transport.write(publish(Publish(topic, payload), MQTT_3))

    def subscribe(self, topic_filter: str) -> None:
        """Ask for what the filter matches."""
        if self._transport:
            self._transport.write(encode(Subscribe(1, [SubscriptionRequest(topic_filter)]), MQTT_3))

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        if self._transport:
            self._transport.write(data)

    def disconnect(self) -> None:
        """Take leave."""
        if self._transport:
            self._transport.write(encode(Disconnect(), MQTT_3))
            self._transport.close()

    def abort(self) -> None:
        """Be gone without a word."""
        if self._transport:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say who it is."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(encode(self._connect, MQTT_3))
        if self._connect.keepalive:
            self._ping = self._loop.call_later(self._connect.keepalive, self._send_ping)

    def data_received(self, data: bytes) -> None:
        """Hand on what came."""
        try:
            for header, body in self._framer.feed(data):
                self._handle(header, body)
        except MalformedPacket:
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever keeps the client."""
        self._transport = None
        if self._ping:
            self._ping.cancel()
        if not self._admitted.done():
            self._admitted.set_exception(exc or ConnectRefused("The broker has closed the connection"))
            self._admitted.exception()
        self._lost()

    def _handle(self, header: int, body: bytes) -> None:
        packet = decode(header, body, MQTT_3)
        match packet:
            case Publish():
                if packet.qos:
                    self.send(encode(Puback(packet.packet_id), MQTT_3))
                self._take(packet.topic, packet.payload)
            case Connack(reason=0) if not self._admitted.done():
                self._let_in = True
                self._admitted.set_result(None)
            case Connack() if not self._admitted.done():
                self._admitted.set_exception(ConnectRefused(f"The broker refuses the client with code {packet.reason}"))
                self._admitted.exception()

    def _send_ping(self) -> None:
        self.send(PINGREQ)
        self._ping = self._loop.call_later(self._connect.keepalive, self._send_ping)
