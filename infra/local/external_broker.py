"""A broker that runs elsewhere, in place of the embedded one: the rules hear what it brings, as long as it is there."""

from __future__ import annotations

import secrets
import threading
from typing import TYPE_CHECKING

from infra.local.broker.messages import BrokerMessage
from infra.local.mqtt.topics import matches
from shared.devices.ids import BACKEND_PREFIX
from shared.devices.mqtt.broker_endpoint import ConnectionCallbacks, DirectBrokerEndpoint
from shared.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable

    Listener = tuple[str, Callable[[BrokerMessage], None]]


class ExternalBroker:
    """One connection to it, which subscribes anew whenever it was lost."""

    def __init__(self, url: str, token: str) -> None:
        self._listeners: list[Listener] = []
        self._changing = threading.Lock()
        self._closed = False
        ears = ConnectionCallbacks(self._received, self._connected, self._lost)
        self._client = DirectBrokerEndpoint(url, token).client(f"{BACKEND_PREFIX}{secrets.token_hex(8)}", ears)
        self._client.start()

    def listen(self, topic_filter: str, take: Callable[[BrokerMessage], None]) -> Callable[[], None]:
        """Call `take` with each message that the filter matches, until what is returned is."""
        listener = (topic_filter, take)
        with self._changing:
            self._listeners.append(listener)
        self._subscribe(topic_filter)

        def unlisten() -> None:
            with self._changing:
                self._listeners.remove(listener)

        return unlisten

    def close(self) -> None:
        """Disconnect for good."""
        self._closed = True
        self._client.stop()

    def _received(self, topic: str, payload: bytes) -> None:
        with self._changing:
            takers = [take for topic_filter, take in self._listeners if matches(topic_filter, topic)]
        for take in takers:
            take(BrokerMessage(topic, payload))

    def _connected(self) -> None:
        with self._changing:
            wanted = {topic_filter for topic_filter, _ in self._listeners}
        for topic_filter in wanted:
            self._subscribe(topic_filter)

    def _subscribe(self, topic_filter: str) -> None:
        from awscrt import mqtt5  # type: ignore[import-untyped]

        # Where there is no connection this is lost, and done again once there is one.
        self._client.subscribe(mqtt5.SubscribePacket([mqtt5.Subscription(topic_filter, mqtt5.QoS.AT_MOST_ONCE)]))

    def _lost(self, reason: str) -> None:
        if not self._closed:
            logger.warning("broker lost", extra={"reason": reason})
