"""Third-party clients work with the broker: awscrt in both versions of MQTT, and paho."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import pytest
from awscrt import io, mqtt, mqtt5  # type: ignore[import-untyped]
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tests.helpers.mqtt_client import TOKEN, EmbeddedBroker, running_broker
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Speaker(Protocol):
    """The operations that all clients have in common."""

    def subscribe(self, topic_filter: str, qos: int) -> int:
        """Subscribe and return the granted QoS, which is always 0."""

    def publish(self, topic: str, payload: bytes, qos: int) -> None:
        """Return once the message is sent, or acknowledged at QoS 1."""

    def heard(self) -> tuple[str, bytes, int]:
        """Return the next message."""

    def close(self) -> None:
        """Disconnect."""


@pytest.fixture(scope="module")
def served() -> Iterator[EmbeddedBroker]:
    with running_broker() as running:
        yield running


@pytest.fixture(scope="module")
def bootstrap() -> io.ClientBootstrap:
    group = io.EventLoopGroup(1)
    return io.ClientBootstrap(group, io.DefaultHostResolver(group))


def patient_socket() -> io.SocketOptions:
    """Return options that give a connection as much time as a test has."""
    options = io.SocketOptions()
    options.connect_timeout_ms = int(CEILING_SECONDS * 1000)
    return options


@dataclass
class Crt5:
    """awscrt, MQTT 5: device-server's client."""

    port: int
    client_id: str
    bootstrap: io.ClientBootstrap
    packets: queue.Queue[mqtt5.PublishPacket] = field(default_factory=queue.Queue)

    def __post_init__(self) -> None:
        connected: Future[Any] = Future()
        self._stopped = threading.Event()
        self.client = mqtt5.Client(
            mqtt5.ClientOptions(
                host_name="127.0.0.1",
                port=self.port,
                bootstrap=self.bootstrap,
                socket_options=patient_socket(),
                connack_timeout_ms=int(CEILING_SECONDS * 1000),
                connect_options=mqtt5.ConnectPacket(
                    client_id=self.client_id, username="kho", password=TOKEN.encode(), keep_alive_interval_sec=60
                ),
                on_publish_callback_fn=lambda data: self.packets.put(data.publish_packet),
                on_lifecycle_event_connection_success_fn=connected.set_result,
                on_lifecycle_event_connection_failure_fn=lambda data: connected.set_exception(data.exception),
                on_lifecycle_event_stopped_fn=lambda _: self._stopped.set(),
            )
        )
        self.client.start()
        self.negotiated = connected.result(CEILING_SECONDS).negotiated_settings

    def subscribe(self, topic_filter: str, qos: int) -> int:
        wanted = mqtt5.SubscribePacket([mqtt5.Subscription(topic_filter, mqtt5.QoS(qos))])
        return int(self.client.subscribe(wanted).result(CEILING_SECONDS).reason_codes[0])

    def publish(self, topic: str, payload: bytes, qos: int) -> None:
        self.client.publish(mqtt5.PublishPacket(topic=topic, payload=payload, qos=mqtt5.QoS(qos))).result(
            CEILING_SECONDS
        )

    def heard(self) -> tuple[str, bytes, int]:
        packet = self.packets.get(timeout=CEILING_SECONDS)
        return packet.topic, packet.payload, int(packet.qos)

    def close(self) -> None:
        self.client.stop()
        assert self._stopped.wait(CEILING_SECONDS)


@dataclass
class Crt3:
    """awscrt, MQTT 3.1.1."""

    port: int
    client_id: str
    bootstrap: io.ClientBootstrap
    messages: queue.Queue[tuple[str, bytes, int]] = field(default_factory=queue.Queue)

    def __post_init__(self) -> None:
        self.connection = mqtt.Connection(
            mqtt.Client(self.bootstrap),
            host_name="127.0.0.1",
            port=self.port,
            client_id=self.client_id,
            clean_session=True,
            keep_alive_secs=60,
            username="kho",
            password=TOKEN,
            socket_options=patient_socket(),
        )
        self.connection.connect().result(CEILING_SECONDS)

    def subscribe(self, topic_filter: str, qos: int) -> int:
        done, _ = self.connection.subscribe(topic_filter, mqtt.QoS(qos), self._take)
        return int(done.result(CEILING_SECONDS)["qos"])

    def publish(self, topic: str, payload: bytes, qos: int) -> None:
        self.connection.publish(topic, payload, mqtt.QoS(qos))[0].result(CEILING_SECONDS)

    def heard(self) -> tuple[str, bytes, int]:
        return self.messages.get(timeout=CEILING_SECONDS)

    def close(self) -> None:
        self.connection.disconnect().result(CEILING_SECONDS)

    def _take(self, topic: str, payload: bytes, qos: int, **_: Any) -> None:
        self.messages.put((topic, payload, int(qos)))


@dataclass
class Paho:
    """paho, in either version."""

    port: int
    client_id: str
    protocol: int
    messages: queue.Queue[paho.MQTTMessage] = field(default_factory=queue.Queue)

    def __post_init__(self) -> None:
        self.client = paho.Client(
            CallbackAPIVersion.VERSION2, client_id=self.client_id, protocol=MQTTProtocolVersion(self.protocol)
        )
        self.client.username_pw_set("kho", TOKEN)
        connected, self.granted = threading.Event(), queue.Queue[int]()
        self.client.on_connect = lambda *_: connected.set()
        self.client.on_subscribe = lambda _c, _u, _mid, reasons, _p: self.granted.put(reasons[0].value)
        self.client.on_message = lambda _c, _u, message: self.messages.put(message)
        self.client.connect_timeout = CEILING_SECONDS
        self.client.connect("127.0.0.1", self.port)
        self.client.loop_start()
        assert connected.wait(CEILING_SECONDS)

    def subscribe(self, topic_filter: str, qos: int) -> int:
        self.client.subscribe(topic_filter, qos)
        return self.granted.get(timeout=CEILING_SECONDS)

    def publish(self, topic: str, payload: bytes, qos: int) -> None:
        self.client.publish(topic, payload, qos).wait_for_publish(CEILING_SECONDS)

    def heard(self) -> tuple[str, bytes, int]:
        message = self.messages.get(timeout=CEILING_SECONDS)
        return message.topic, bytes(message.payload), message.qos

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


MAKERS: dict[str, Callable[[int, str, io.ClientBootstrap], Speaker]] = {
    "awscrt-5": Crt5,
    "awscrt-3": Crt3,
    "paho-5": lambda port, client_id, _: Paho(port, client_id, 5),
    "paho-3": lambda port, client_id, _: Paho(port, client_id, 4),
}


@pytest.fixture(params=MAKERS)
def speaker(request: pytest.FixtureRequest, served: EmbeddedBroker, bootstrap: io.ClientBootstrap) -> Iterator[Speaker]:
    made = MAKERS[request.param](served.port, f"kho-backend-{uuid4().hex}", bootstrap)
    yield made
    made.close()


@pytest.fixture
def listener(served: EmbeddedBroker, bootstrap: io.ClientBootstrap) -> Iterator[Crt5]:
    made = Crt5(served.port, f"kho-backend-{uuid4().hex}", bootstrap)
    yield made
    made.close()


def test_each_client_publishes_and_receives(speaker: Speaker, listener: Crt5) -> None:
    for qos in (0, 1):
        assert speaker.subscribe("devices/+/down", qos) == 0
        assert listener.subscribe("devices/a/up", qos) == 0
        for size in (0, 1, 127, 128, 16_384, 128 * 1024):
            payload = bytes(range(256)) * (size // 256 + 1)
            speaker.publish("devices/a/up", payload[:size], qos)
            assert listener.heard() == ("devices/a/up", payload[:size], 0)
            listener.publish("devices/a/down", payload[:size], qos)
            assert speaker.heard() == ("devices/a/down", payload[:size], 0)


def test_awscrt_and_paho_exchange_properties(served: EmbeddedBroker, listener: Crt5) -> None:
    other = Paho(served.port, f"kho-backend-{uuid4().hex}", 5)
    try:
        other.subscribe("devices/p/down", 1)
        listener.subscribe("devices/p/up", 1)
        listener.client.publish(
            mqtt5.PublishPacket(
                topic="devices/p/down",
                payload=b"?",
                qos=mqtt5.QoS.AT_LEAST_ONCE,
                response_topic="devices/p/up",
                correlation_data=b"\0\xff",
                content_type="text/plain",
                message_expiry_interval_sec=60,
                user_properties=[mqtt5.UserProperty("a", "1"), mqtt5.UserProperty("a", "2")],
            )
        ).result(CEILING_SECONDS)
        properties = other.messages.get(timeout=CEILING_SECONDS).properties
        assert properties is not None
        assert (properties.ResponseTopic, properties.CorrelationData) == ("devices/p/up", b"\0\xff")  # type: ignore[attr-defined]
        assert (properties.ContentType, properties.UserProperty) == ("text/plain", [("a", "1"), ("a", "2")])  # type: ignore[attr-defined]
        answer = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        answer.CorrelationData = b"\0\xff"
        other.client.publish("devices/p/up", b"!", 0, properties=answer)
        heard = listener.packets.get(timeout=CEILING_SECONDS)
        assert (heard.payload, heard.correlation_data_bytes) == (b"!", b"\0\xff")
    finally:
        other.close()


def test_awscrt_reads_negotiated_settings(listener: Crt5) -> None:
    granted = listener.negotiated
    assert granted.maximum_qos == mqtt5.QoS.AT_LEAST_ONCE
    assert granted.topic_alias_maximum_to_server == 0
    assert not granted.retain_available
    assert granted.wildcard_subscriptions_available
    assert not granted.subscription_identifiers_available
    assert not granted.shared_subscriptions_available
