"""A lightweight MQTT 3.1.1 client; one event loop can hold thousands."""

import asyncio
from collections.abc import Callable
from typing import Final

from infra.local.iot.mqtt.decoding import decode
from infra.local.iot.mqtt.encoding import encode
from infra.local.iot.mqtt.framing import Framer
from infra.local.iot.mqtt.packets import MQTT_3, Connack, Connect, Disconnect, Pingreq, Publish, Subscribe
from infra.local.iot.mqtt.reason_codes import MalformedPacket

_MAX_PACKET_BYTES: Final = 512 * 1024


class ConnectRefused(Exception):
    """The broker rejected the CONNECT."""


class MqttClient(asyncio.Protocol):
    """One connection. It passes messages to `on_message`."""

    def __init__(self, connect: Connect, on_message: Callable[[str, bytes], None], on_lost: Callable[[], None]) -> None:
        self._connect = connect
        self._on_message = on_message
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._framer = Framer(_MAX_PACKET_BYTES)
        self._transport: asyncio.Transport | None = None
        self._ping: asyncio.TimerHandle | None = None
        self._accepted: asyncio.Future[None] = self._loop.create_future()

    @property
    def connected(self) -> bool:
        """True if published messages are sent."""
        is_open = self._transport is not None and not self._transport.is_closing()
        return is_open and self._accepted.done() and self._accepted.exception() is None

    async def wait_accepted(self, seconds: float) -> None:
        """Wait for the broker's CONNACK."""
        await asyncio.wait_for(asyncio.shield(self._accepted), seconds)

    def publish(self, topic: str, payload: bytes) -> None:
        """Send a message at QoS 0. Without a connection it is lost, as with a real device."""
        self.send(encode(Publish(topic, payload), MQTT_3))

    def subscribe(self, topic_filter: str) -> None:
        """Subscribe to a filter."""
        self.send(encode(Subscribe(1, [(topic_filter, 0)]), MQTT_3))

    def send(self, data: bytes) -> None:
        """Send raw bytes."""
        if self._transport:
            self._transport.write(data)

    def disconnect(self) -> None:
        """Send DISCONNECT and close the connection."""
        if self._transport:
            self._transport.write(encode(Disconnect(), MQTT_3))
            self._transport.close()

    def abort(self) -> None:
        """Abort the connection without a DISCONNECT."""
        if self._transport:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send CONNECT and start the pings."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(encode(self._connect, MQTT_3))
        if self._connect.keepalive:
            self._ping = self._loop.call_later(self._connect.keepalive, self._send_ping)

    def data_received(self, data: bytes) -> None:
        """Handle received packets."""
        try:
            for header, body in self._framer.feed(data):
                self._handle(header, body)
        except MalformedPacket:
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Call `on_lost`."""
        self._transport = None
        if self._ping:
            self._ping.cancel()
        self._refuse(exc or ConnectRefused("The broker closed the connection"))
        self._on_lost()

    def _handle(self, header: int, body: bytes) -> None:
        match decode(header, body, MQTT_3):
            case Publish(topic, payload):
                self._on_message(topic, payload)
            case Connack(reason=0) if not self._accepted.done():
                self._accepted.set_result(None)
            case Connack(reason):
                self._refuse(ConnectRefused(f"The broker rejected the client with code {reason}"))

    def _refuse(self, error: Exception) -> None:
        if not self._accepted.done():
            self._accepted.set_exception(error)
            self._accepted.exception()  # asyncio warns of an exception that is never read

    def _send_ping(self) -> None:
        self.send(encode(Pingreq(), MQTT_3))
        self._ping = self._loop.call_later(self._connect.keepalive, self._send_ping)
