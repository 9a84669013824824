"""A client of an external broker, used by the rules instead of the embedded broker."""

from __future__ import annotations

import secrets
import threading
from typing import TYPE_CHECKING

from infra.local.iot.broker.messages import BrokerMessage
from infra.local.iot.mqtt.topics import matches
from shared.devices.ids import BACKEND_PREFIX
from shared.devices.mqtt.broker_endpoint import ConnectionCallbacks, DirectBrokerEndpoint
from shared.platform.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable

    Listener = tuple[str, Callable[[BrokerMessage], None]]


class ExternalBroker:
    """One connection to the broker, which subscribes again after each reconnect."""

    def __init__(self, url: str, token: str) -> None:
        self._listeners: list[Listener] = []
        self._lock = threading.Lock()
        self._closed = False
        callbacks = ConnectionCallbacks(self._on_message, self._on_connected, self._on_lost)
        self._client = DirectBrokerEndpoint(url, token).create_client(
            f"{BACKEND_PREFIX}{secrets.token_hex(8)}", callbacks
        )
        self._client.start()

    def listen(self, topic_filter: str, handler: Callable[[BrokerMessage], None]) -> Callable[[], None]:
        """Call `handler` with each matching message until the returned function is called."""
        listener = (topic_filter, handler)
        with self._lock:
            self._listeners.append(listener)
        self._subscribe(topic_filter)

        def unlisten() -> None:
            with self._lock:
                self._listeners.remove(listener)

        return unlisten

    def close(self) -> None:
        """Disconnect permanently."""
        self._closed = True
        self._client.stop()

    def _on_message(self, topic: str, payload: bytes) -> None:
        with self._lock:
            handlers = [handler for topic_filter, handler in self._listeners if matches(topic_filter, topic)]
        for handler in handlers:
            handler(BrokerMessage(topic, payload))

    def _on_connected(self) -> None:
        with self._lock:
            filters = {topic_filter for topic_filter, _ in self._listeners}
        for topic_filter in filters:
            self._subscribe(topic_filter)

    def _subscribe(self, topic_filter: str) -> None:
        from awscrt import mqtt5  # type: ignore[import-untyped]

        # Without a connection this is lost; _on_connected repeats it.
        self._client.subscribe(mqtt5.SubscribePacket([mqtt5.Subscription(topic_filter, mqtt5.QoS.AT_MOST_ONCE)]))

    def _on_lost(self, reason: str) -> None:
        if not self._closed:
            logger.warning("broker connection lost", extra={"reason": reason})
