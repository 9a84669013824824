"""The broker: connections, subscriptions, and IoT Core's additions to MQTT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from infra.local.iot.broker.limits import Limits, fits
from infra.local.iot.broker.messages import BrokerMessage
from infra.local.iot.broker.presence import DisconnectReason, PresenceTracker
from infra.local.iot.broker.subscriptions import Subscriptions
from infra.local.iot.mqtt.reason_codes import ReasonCode
from infra.local.iot.mqtt.topics import is_topic

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from infra.local.iot.broker.authorization import FleetAccessRules
    from infra.local.iot.broker.connection import BrokerConnection
    from infra.local.iot.mqtt.packets import Connect


_STATUS: Final = {
    "InvalidRequestException": 400,
    "ForbiddenException": 403,
    "ResourceNotFoundException": 404,
    "RequestEntityTooLargeException": 413,
    "ThrottlingException": 429,
}


class DataPlaneError(Exception):
    """A request that IoT Core would reject. `name` is that of its exception, `status` that of its response."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.status = _STATUS[name]


@dataclass(slots=True)
class BrokerCounters:
    """Messages and packets since the start."""

    received: int = 0
    sent: int = 0
    dropped_slow: int = 0
    """Messages dropped because the client did not read fast enough."""
    dropped_rate: int = 0
    """Messages dropped because the client exceeded its publish rate."""
    refused: int = 0
    """Connections, messages and subscriptions denied by the access rules."""


class Broker:
    """The broker's state. Not thread-safe: use it only in its event loop's thread."""

    def __init__(
        self,
        access: FleetAccessRules,
        limits: Limits,
        loop: asyncio.AbstractEventLoop,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.access = access
        self.limits = limits
        self.loop = loop
        self.clock = clock or loop.time
        """The clock for publishing rates, in seconds."""
        self.counters = BrokerCounters()
        self.presence = PresenceTracker(
            lambda topic, payload: self.publish(BrokerMessage(topic, payload)), limits.presence_seconds
        )
        self.subscribers = Subscriptions()
        self._connections: dict[str, BrokerConnection] = {}
        self._open_connections: set[BrokerConnection] = set()
        self._unauthenticated: set[BrokerConnection] = set()

    def register(self, connection: BrokerConnection) -> bool:
        """Register a connection. Return False if there are too many."""
        if (
            len(self._open_connections) >= self.limits.connections
            or len(self._unauthenticated) >= self.limits.unauthenticated_connections
        ):
            return False
        self._open_connections.add(connection)
        self._unauthenticated.add(connection)
        return True

    def unregister(self, connection: BrokerConnection) -> None:
        """Unregister a connection."""
        self._open_connections.discard(connection)
        self._unauthenticated.discard(connection)

    async def may_connect(self, connection: BrokerConnection, connect: Connect) -> bool:
        """Return True if a client may connect with its will."""
        if not await self.access.connect(connection.client):
            return False
        return connect.will is None or self.access.publish(connection.client, connect.will.topic)

    def attach(self, connection: BrokerConnection) -> None:
        """Attach an accepted client, and end the previous connection of its client id."""
        client_id = connection.presence.client_id
        if previous := self._connections.get(client_id):
            previous.end(ReasonCode.SESSION_TAKEN_OVER, DisconnectReason.DUPLICATE_CLIENTID)
        self._connections[client_id] = connection
        self._unauthenticated.discard(connection)
        self.presence.on_connected(connection.presence)

    def detach(self, connection: BrokerConnection, reason: DisconnectReason) -> None:
        """Detach a client: end its subscriptions, and publish its will."""
        del self._connections[connection.presence.client_id]
        for topic_filter in connection.subscriptions:
            self.subscribers.remove(connection.receive, topic_filter)
        self.presence.on_disconnected(connection.presence, reason)
        will = connection.will
        if will and reason is not DisconnectReason.SERVER_INITIATED_DISCONNECT:
            if will.properties:
                will.properties.will_delay = None
            self.publish(BrokerMessage(will.topic, will.payload, will.properties))

    def publish(self, message: BrokerMessage) -> bool:
        """Deliver a message to its subscribers. Return True if there is one."""
        self.counters.received += 1
        subscribers = self.subscribers.match(message.topic)
        for receive in subscribers:
            receive(message)
        return bool(subscribers)

    def subscribe(self, connection: BrokerConnection, topic_filter: str) -> None:
        """Add a client's subscription."""
        connection.subscriptions.add(topic_filter)
        self.subscribers.add(connection.receive, topic_filter)

    def unsubscribe(self, connection: BrokerConnection, topic_filter: str) -> bool:
        """Remove a client's subscription. Return False if there was none."""
        if topic_filter not in connection.subscriptions:
            return False
        connection.subscriptions.remove(topic_filter)
        self.subscribers.remove(connection.receive, topic_filter)
        return True

    def send_direct(self, client_id: str, message: BrokerMessage) -> None:
        """Send one client a message, with or without a subscription."""
        self.receiver(client_id, message).receive(message)

    def receiver(self, client_id: str, message: BrokerMessage) -> BrokerConnection:
        """Return the connection that takes a direct message to this client. It only reads: call it in any thread."""
        self.check(message)
        connection = self._connections.get(client_id)
        if connection is None:
            raise DataPlaneError("ResourceNotFoundException", "The target client ID is not connected")
        if not self.access.receive(connection.client, message.topic):
            raise DataPlaneError("ForbiddenException", "The receiver may not receive on the topic")
        if not connection.takes(message):
            self.counters.dropped_slow += 1
            raise DataPlaneError("ThrottlingException", "The target client does not read its messages fast enough")
        return connection

    def is_connected(self, client_id: str) -> bool:
        """Return True if the client is connected. It only reads: call it in any thread."""
        return client_id in self._connections

    def end_connection(self, client_id: str, *, prevent_will: bool = False) -> None:
        """Disconnect a client, as DeleteConnection does."""
        connection = self._connections.get(client_id)
        if connection is None:
            raise DataPlaneError("ResourceNotFoundException", "There is no such client")
        if prevent_will:
            connection.will = None
        connection.end(ReasonCode.ADMINISTRATIVE_ACTION, DisconnectReason.API_INITIATED_DISCONNECT)

    def close(self) -> None:
        """End all connections."""
        for connection in list(self._open_connections):
            connection.end(ReasonCode.SERVER_SHUTTING_DOWN, DisconnectReason.SERVER_INITIATED_DISCONNECT)

    def check(self, message: BrokerMessage) -> None:
        """Raise DataPlaneError if a message is not within the limits."""
        if not is_topic(message.topic) or message.topic.startswith("$") or not fits(self.limits, message.topic):
            raise DataPlaneError("InvalidRequestException", "The topic is not valid")
        if len(message.payload) > self.limits.payload_bytes:
            raise DataPlaneError("RequestEntityTooLargeException", "The payload exceeds the maximum size allowed")
