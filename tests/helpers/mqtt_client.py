"""An embedded broker for one test, and clients that see every packet."""

from __future__ import annotations

import contextlib
import json
import queue
import socket
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from infra.local.iot.broker.authorization import FleetAccessRules
from infra.local.iot.broker.limits import Limits
from infra.local.iot.broker.local_broker import LocalBroker
from infra.local.iot.broker.messages import BrokerMessage
from infra.local.iot.mqtt.decoding import decode
from infra.local.iot.mqtt.encoding import encode
from infra.local.iot.mqtt.framing import Framer
from infra.local.iot.mqtt.packets import (
    MQTT_3,
    MQTT_5,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Pingresp,
    Publish,
    Suback,
    Subscribe,
)
from infra.local.sockets import listen
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from infra.local.iot.broker.authorization import ClientIdentity

TOKEN: Final = "the-backends-word"
BACKEND: Final = "kho-backend-1"
PATIENT: Final = Limits(connect_seconds=CEILING_SECONDS)
"""The broker's limits for tests that do not depend on the time of admission."""
UP, DOWN = "devices/lamp/up", "devices/lamp/down"

Kind = TypeVar("Kind", bound=Packet)


async def admit_all(_: ClientIdentity) -> bool:
    """Admit any device."""
    return True


async def admit_none(_: ClientIdentity) -> bool:
    """Admit no device."""
    return False


def send_direct_message(broker: LocalBroker, client_id: str, topic: str, payload: bytes) -> None:
    """Send one client a message at QoS 0."""
    broker.call(lambda state: state.send_direct(client_id, BrokerMessage(topic, payload)))


class BrokerUnderTest(Protocol):
    """A running broker of any kind."""

    @property
    def port(self) -> int:
        """Return the broker's port on loopback."""


@dataclass(frozen=True, slots=True)
class EmbeddedBroker:
    """The running embedded broker."""

    broker: LocalBroker
    port: int

    @contextmanager
    def heard(self, topic_filter: str) -> Iterator[queue.Queue[BrokerMessage]]:
        """Yield a queue of the messages that match a filter."""
        messages: queue.Queue[BrokerMessage] = queue.Queue()
        stop = self.broker.listen(topic_filter, messages.put)
        try:
            yield messages
        finally:
            stop()


@contextmanager
def running_broker(
    limits: Limits = PATIENT,
    admits: Callable[[ClientIdentity], Awaitable[bool]] = admit_all,
    clock: Callable[[], float] | None = None,
) -> Iterator[EmbeddedBroker]:
    """Yield a broker that admits the clients which the test chooses."""
    listener = listen("127.0.0.1", 0)
    broker = LocalBroker(listener, FleetAccessRules(TOKEN, admits), limits, clock)
    try:
        yield EmbeddedBroker(broker, listener.getsockname()[1])
    finally:
        broker.close()


@dataclass
class RawMqttClient:
    """A client that does nothing on its own."""

    port: int
    level: int = MQTT_3
    _framer: Framer = field(default_factory=lambda: Framer(1_000_000))
    _frames: deque[tuple[int, bytes]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=CEILING_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> RawMqttClient:
        return self

    def __exit__(self, *_: object) -> None:
        """Disconnect, and wait until the broker has noticed."""
        with self.socket:
            if self.socket.fileno() < 0:
                return
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_WR)
                while self.socket.recv(65_536):
                    continue

    def send(self, *packets: Packet) -> None:
        """Send packets in one piece. If the broker closes the connection meanwhile, `receive` reports it."""
        with contextlib.suppress(ConnectionError):
            self.socket.sendall(b"".join(encode(packet, self.level) for packet in packets))

    def receive(self) -> Packet | None:
        """Return the next packet, None at the connection's end."""
        while not self._frames:
            try:
                data = self.socket.recv(65_536)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self._frames.extend(self._framer.feed(data))
        return decode(*self._frames.popleft(), self.level)

    def expect(self, kind: type[Kind]) -> Kind:
        """Return the next packet, which must be of this kind."""
        packet = self.receive()
        assert isinstance(packet, kind), packet
        return packet

    def connect(self, client_id: str, **about: object) -> Connack:
        """Return the broker's answer to a CONNECT."""
        if client_id.startswith(BACKEND):
            about = {"user_name": "kho", "password": TOKEN.encode()} | about
        self.send(Connect(client_id, self.level, **about))  # type: ignore[arg-type]  # passed by the test
        return self.expect(Connack)

    def subscribe(self, *filters: str, qos: int = 0) -> list[int]:
        """Return SUBACK's code for each filter."""
        self.send(Subscribe(1, [(topic_filter, qos) for topic_filter in filters]))
        return self.expect(Suback).reasons

    def publish(self, topic: str, payload: bytes = b"", **about: object) -> None:
        """Send a message."""
        self.send(Publish(topic, payload, **about))  # type: ignore[arg-type]  # passed by the test

    def settle(self) -> list[Packet]:
        """Return the packets received until the broker has processed everything sent."""
        self.send(Pingreq())
        packets: list[Packet] = []
        while not isinstance(packet := self.receive(), Pingresp):
            assert packet is not None, packets
            packets.append(packet)
        return packets


def client(served: BrokerUnderTest, client_id: str, level: int = MQTT_3, **about: object) -> RawMqttClient:
    """Return a connected client."""
    wire = RawMqttClient(served.port, level)
    assert wire.connect(client_id, **about).reason == 0
    return wire


def backend(served: BrokerUnderTest, level: int = MQTT_5) -> RawMqttClient:
    """Return the backend's own connected client."""
    return client(served, BACKEND, level)


def disconnect_reason(wire: RawMqttClient) -> int | None:
    """Return the reason code of the broker's DISCONNECT, None if it sends none. No other packet may come first."""
    packet = wire.receive()
    if packet is None:
        return None
    assert isinstance(packet, Disconnect), packet
    assert wire.receive() is None
    return packet.reason


def next_lifecycle_event(messages: queue.Queue[BrokerMessage], kind: str, client_id: str = "lamp") -> dict[str, object]:
    """Return the next lifecycle event, which must be of this kind."""
    message = messages.get(timeout=CEILING_SECONDS)
    assert message.topic == f"$aws/events/presence/{kind}/{client_id}"
    event: dict[str, object] = json.loads(message.payload)
    return event
