"""Endpoints of the devices' broker: IoT Core over signed WebSockets, or a broker over TCP or TLS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

from shared.platform.runtime import runtime

if TYPE_CHECKING:
    from collections.abc import Callable

    from awscrt import mqtt5  # type: ignore[import-untyped]


@dataclass(frozen=True, slots=True)
class ConnectionCallbacks:
    """Callbacks of a connection."""

    on_message: Callable[[str, bytes], None]
    on_connected: Callable[[], None]
    on_lost: Callable[[str], None]


KEEPALIVE_SECONDS: Final = 240
_MIN_RECONNECT_MS: Final = 100
_MAX_RECONNECT_MS: Final = 2_000
_CONNACK_MS: Final = 5_000
_ACK_SECONDS: Final = 5


class BrokerEndpoint(Protocol):
    """A broker, and the limits of one process's use of it."""

    @property
    def keepalive(self) -> int:
        """The MQTT keepalive, in seconds."""

    @property
    def max_connections(self) -> int:
        """The number of connections to open before unused subscriptions are evicted."""

    def create_client(self, client_id: str, callbacks: ConnectionCallbacks) -> mqtt5.Client:
        """Return an MQTT client that is not started yet."""


@dataclass(frozen=True, slots=True)
class DirectBrokerEndpoint:
    """A broker that is reached directly and identifies the backend by a token."""

    url: str
    token: str
    keepalive: int = KEEPALIVE_SECONDS
    max_connections: int = 24

    def create_client(self, client_id: str, callbacks: ConnectionCallbacks) -> mqtt5.Client:
        """Return an MQTT client that is not started yet."""
        from awscrt import io, mqtt5

        parts = urlsplit(self.url)
        options = _options(parts.hostname or "", client_id, self.keepalive, callbacks)
        options.connect_options.username, options.connect_options.password = "kho", self.token
        options.port = parts.port or (8883 if parts.scheme == "mqtts" else 1883)
        options.tls_ctx = io.ClientTlsContext(io.TlsContextOptions()) if parts.scheme == "mqtts" else None
        return mqtt5.Client(options)


@dataclass(frozen=True, slots=True)
class IotCoreEndpoint:
    """An account's IoT Core. A function makes one call at a time, so one connection suffices."""

    endpoint: str
    keepalive: int = KEEPALIVE_SECONDS
    max_connections: int = 1

    def create_client(self, client_id: str, callbacks: ConnectionCallbacks) -> mqtt5.Client:
        """Return an MQTT client that is not started yet."""
        from awscrt import auth
        from awsiot import mqtt5_client_builder  # type: ignore[import-untyped]

        options = _options(self.endpoint, client_id, self.keepalive, callbacks)
        return mqtt5_client_builder.websockets_with_default_aws_signing(
            region=runtime.environment["AWS_REGION"],
            credentials_provider=auth.AwsCredentialsProvider.new_default_chain(),
            endpoint=self.endpoint,
            client_options=options,
            enable_metrics_collection=False,
        )


def _options(host: str, client_id: str, keepalive: int, callbacks: ConnectionCallbacks) -> Any:
    from awscrt import mqtt5

    def on_publish(data: mqtt5.PublishReceivedData) -> None:
        packet = data.publish_packet
        callbacks.on_message(packet.topic, packet.payload or b"")

    return mqtt5.ClientOptions(
        host_name=host,
        connect_options=mqtt5.ConnectPacket(client_id=client_id, keep_alive_interval_sec=keepalive),
        session_behavior=mqtt5.ClientSessionBehaviorType.CLEAN,
        # Messages not sent before a connection loss are never sent later.
        offline_queue_behavior=mqtt5.ClientOperationQueueBehaviorType.FAIL_ALL_ON_DISCONNECT,
        min_reconnect_delay_ms=_MIN_RECONNECT_MS,
        max_reconnect_delay_ms=_MAX_RECONNECT_MS,
        connack_timeout_ms=_CONNACK_MS,
        ping_timeout_ms=min(10_000, keepalive * 500),
        ack_timeout_sec=_ACK_SECONDS,
        disable_metrics=True,
        on_publish_callback_fn=on_publish,
        on_lifecycle_event_connection_success_fn=lambda _: callbacks.on_connected(),
        on_lifecycle_event_connection_failure_fn=lambda data: callbacks.on_lost(str(data.exception)),
        on_lifecycle_event_disconnection_fn=lambda data: callbacks.on_lost(str(data.exception)),
    )
