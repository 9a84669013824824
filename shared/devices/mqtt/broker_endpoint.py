"""Where the devices' broker is: IoT Core by websockets that are signed, or a broker that is reached directly."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

    from awscrt import mqtt5  # type: ignore[import-untyped]


@dataclass(frozen=True, slots=True)
class ConnectionCallbacks:
    """What is told of what happens to a connection."""

    received: Callable[[str, bytes], None]
    connected: Callable[[], None]
    lost: Callable[[str], None]


KEEPALIVE_SECONDS: Final = 240
_MIN_RECONNECT_MS: Final = 100
_MAX_RECONNECT_MS: Final = 2_000
_CONNACK_MS: Final = 5_000
_ACK_SECONDS: Final = 5


class BrokerEndpoint(Protocol):
    """A broker, and how much of it one process may use."""

    @property
    def keepalive(self) -> int:
        """After how many seconds of silence a connection shows that it is alive."""

    @property
    def connections(self) -> int:
        """How many connections are opened before what is not waited for makes room."""

    def client(self, client_id: str, ears: ConnectionCallbacks) -> mqtt5.Client:
        """A client that is still to be started."""


@dataclass(frozen=True, slots=True)
class DirectBrokerEndpoint:
    """A broker that is reached directly, which knows the backend by a word."""

    url: str
    token: str
    keepalive: int = KEEPALIVE_SECONDS
    connections: int = 24

    def client(self, client_id: str, ears: ConnectionCallbacks) -> mqtt5.Client:
        """A client that is still to be started."""
        from awscrt import io, mqtt5

        parts = urlsplit(self.url)
        options = _options(parts.hostname or "", client_id, self.keepalive, ears)
        options.connect_options.username, options.connect_options.password = "kho", self.token
        options.port = parts.port or (8883 if parts.scheme == "mqtts" else 1883)
        options.tls_ctx = io.ClientTlsContext(io.TlsContextOptions()) if parts.scheme == "mqtts" else None
        return mqtt5.Client(options)


@dataclass(frozen=True, slots=True)
class IotCoreEndpoint:
    """An account's IoT Core; a function makes one call at a time, and so needs one connection."""

    endpoint: str
    keepalive: int = KEEPALIVE_SECONDS
    connections: int = 1

    def client(self, client_id: str, ears: ConnectionCallbacks) -> mqtt5.Client:
        """A client that is still to be started."""
        from awscrt import auth
        from awsiot import mqtt5_client_builder  # type: ignore[import-untyped]

        options = _options(self.endpoint, client_id, self.keepalive, ears)
        return mqtt5_client_builder.websockets_with_default_aws_signing(
            region=os.environ["AWS_REGION"],
            credentials_provider=auth.AwsCredentialsProvider.new_default_chain(),
            endpoint=self.endpoint,
            client_options=options,
            enable_metrics_collection=False,
        )


def _options(host: str, client_id: str, keepalive: int, ears: ConnectionCallbacks) -> Any:
    from awscrt import mqtt5

    def take(data: mqtt5.PublishReceivedData) -> None:
        packet = data.publish_packet
        ears.received(packet.topic, packet.payload or b"")

    return mqtt5.ClientOptions(
        host_name=host,
        connect_options=mqtt5.ConnectPacket(client_id=client_id, keep_alive_interval_sec=keepalive),
        session_behavior=mqtt5.ClientSessionBehaviorType.CLEAN,
        # What was not sent when the connection is lost is never sent later.
        offline_queue_behavior=mqtt5.ClientOperationQueueBehaviorType.FAIL_ALL_ON_DISCONNECT,
        min_reconnect_delay_ms=_MIN_RECONNECT_MS,
        max_reconnect_delay_ms=_MAX_RECONNECT_MS,
        connack_timeout_ms=_CONNACK_MS,
        ping_timeout_ms=min(10_000, keepalive * 500),
        ack_timeout_sec=_ACK_SECONDS,
        disable_metrics=True,
        on_publish_callback_fn=take,
        on_lifecycle_event_connection_success_fn=lambda _: ears.connected(),
        on_lifecycle_event_connection_failure_fn=lambda data: ears.lost(str(data.exception)),
        on_lifecycle_event_disconnection_fn=lambda data: ears.lost(str(data.exception)),
    )
