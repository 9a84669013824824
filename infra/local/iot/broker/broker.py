"""The broker: sessions, subscriptions, retained messages, and IoT Core's additions to MQTT."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from infra.local.iot.broker.data_plane_errors import DataPlaneError
from infra.local.iot.broker.limits import Limits, fits
from infra.local.iot.broker.messages import BrokerMessage
from infra.local.iot.broker.outbox import Flusher
from infra.local.iot.broker.presence import DisconnectReason, PresenceRecord, PresenceTracker
from infra.local.iot.broker.sessions import BrokerSession
from infra.local.iot.broker.subscriptions import Subscriptions
from infra.local.iot.mqtt.reason_codes import ReasonCode
from infra.local.iot.mqtt.topics import is_topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.local.iot.broker.authorization import ClientIdentity, FleetAccessRules
    from infra.local.iot.broker.connect import ConnectTerms
    from infra.local.iot.broker.connection import BrokerConnection
    from infra.local.iot.mqtt.packets import Connect, SubscriptionRequest, Will

SYSTEM: Final = "$aws"


@dataclass(slots=True)
class BrokerCounters:
    """Messages and packets since the start."""

    received: int = 0
    sent: int = 0
    dropped_slow: int = 0
    """Messages dropped because the client did not read fast enough."""
    dropped_rate: int = 0
    """Messages dropped because the client exceeded its publish rate."""
    expired: int = 0
    refused: int = 0
    """Connections, messages and subscriptions denied by the access rules."""
    malformed: int = 0
    """Connections ended because of malformed or forbidden packets."""


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
        """The clock for publishing rates and message expiry, in seconds."""
        self.counters = BrokerCounters()
        self.flusher = Flusher(loop)
        self.presence = PresenceTracker(
            lambda topic, payload: self.publish(BrokerMessage(topic, payload, sender=SYSTEM))
        )
        self.subscribers = Subscriptions()
        self._sessions: dict[str, BrokerSession] = {}
        self._connections: dict[str, BrokerConnection] = {}
        self._open_connections: set[BrokerConnection] = set()
        self._unauthenticated: set[BrokerConnection] = set()
        self._retained: dict[str, BrokerMessage] = {}

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

    async def may_connect(self, client: ClientIdentity, will: Will | None) -> bool:
        """Return True if a client may connect with this will."""
        return await self.access.connect(client) and (will is None or self.access.publish(client, will.topic))

    def open_session(self, connection: BrokerConnection, client_id: str, connect: Connect, terms: ConnectTerms) -> bool:
        """Open the client's session and end its previous connection. Return True if the session existed."""
        previous = self._connections.get(client_id)
        if previous:
            previous.end(ReasonCode.SESSION_TAKEN_OVER, DisconnectReason.DUPLICATE_CLIENTID)
        session = self._sessions.get(client_id)
        if session and connect.clean:
            self._delete_session(session)
            session = None
        session_present = session is not None
        if session is None:
            session = self._sessions[client_id] = BrokerSession(
                client_id, self.loop, self.clock, self.limits, self.counters
            )
        if session.expiry_timer:
            session.expiry_timer.cancel()
            session.expiry_timer = None
        session.expiry_seconds = terms.session_expiry
        connection.session = session
        self._connections[client_id] = connection
        self._unauthenticated.discard(connection)
        transport = connection.transport
        peer, local = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        connection.presence = PresenceRecord(
            client_id, connect.clean, terms.keepalive, terms.session_expiry, peer[:2] if peer else ("", 0), local[:2]
        )
        self.presence.on_connected(connection.presence)
        return session_present

    def detach(self, connection: BrokerConnection, reason: DisconnectReason) -> None:
        """Detach a client: keep its session as long as negotiated, and publish its will."""
        session = connection.session
        session.detach()
        del self._connections[session.client_id]
        expiring = sum(1 for each in self._sessions.values() if each.expiry_timer) if session.expiry_seconds else 0
        if session.expiry_seconds and expiring < self.limits.sessions_kept:
            session.expiry_timer = self.loop.call_later(session.expiry_seconds, self._delete_session, session)
        else:
            self._delete_session(session)
        self.presence.on_disconnected(connection.presence, reason)
        will = connection.will
        if will and reason is not DisconnectReason.SERVER_INITIATED_DISCONNECT:
            self.publish(
                BrokerMessage(will.topic, will.payload, will.qos, will.retain, will.properties, session.client_id)
            )

    def publish(self, message: BrokerMessage) -> bool:
        """Deliver a message to its subscribers and retain it if requested. Return True if there is a subscriber."""
        self.counters.received += 1
        properties = message.properties
        if properties:
            if properties.will_delay is not None:
                properties.will_delay = None
            if properties.message_expiry is not None:
                seconds = min(max(properties.message_expiry, 1), self.limits.message_expiry_seconds)
                message.expires_at = self.clock() + seconds
        if message.retain:
            self._retain(message)
        matches = self.subscribers.match(message.topic)
        for subscriber, request in matches:
            subscriber.receive(message, request)
        return bool(matches)

    def subscribe(self, session: BrokerSession, request: SubscriptionRequest) -> None:
        """Add a client's subscription."""
        session.subscriptions[request.topic_filter] = request
        self.subscribers.add(session, request)

    def unsubscribe(self, session: BrokerSession, topic_filter: str) -> bool:
        """Remove a client's subscription. Return False if there was none."""
        if session.subscriptions.pop(topic_filter, None) is None:
            return False
        self.subscribers.remove(session, topic_filter)
        return True

    def send_retained(self, session: BrokerSession, request: SubscriptionRequest) -> None:
        """Send the message retained on the filter's own topic. As in IoT Core, filters with wildcards get none."""
        message = self._retained.get(request.topic_filter)
        if message and message.expired(self.clock()):
            del self._retained[message.topic]
        elif message:
            session.send_retained(message, request.qos)

    def send_direct(self, client_id: str, message: BrokerMessage) -> None:
        """Send one client a message at QoS 0, with or without a subscription."""
        self._direct_session(client_id, message).send_direct(message)

    async def confirm_direct(self, client_id: str, message: BrokerMessage, seconds: float) -> None:
        """Send one client a message at QoS 1 and wait for its acknowledgement."""
        confirmation = self._direct_session(client_id, message).confirm_direct(replace(message, qos=1))
        try:
            await asyncio.wait_for(confirmation, seconds)
        except TimeoutError:
            raise DataPlaneError("GatewayTimeoutException", f"No acknowledgement within {seconds:g} s") from None

    def end_connection(self, client_id: str, *, clean_session: bool = False, prevent_will: bool = False) -> None:
        """Disconnect a client, as DeleteConnection does."""
        connection, session = self._connections.get(client_id), self._sessions.get(client_id)
        if session is None:
            raise DataPlaneError("ResourceNotFoundException", "There is no such client")
        if clean_session:
            session.expiry_seconds = 0
        if connection is None:
            if clean_session:
                self._delete_session(session)
            return
        if prevent_will:
            connection.will = None
        connection.end(ReasonCode.ADMINISTRATIVE_ACTION, DisconnectReason.API_INITIATED_DISCONNECT)

    def presence_record(self, client_id: str) -> PresenceRecord | None:
        """Return the record of a client's connection."""
        return self.presence.find(client_id, self.limits.presence_seconds)

    def subscriptions(self, client_id: str) -> list[SubscriptionRequest] | None:
        """Return a client's subscriptions, or None if it has no session."""
        session = self._sessions.get(client_id)
        return None if session is None else list(session.subscriptions.values())

    def retained(self, topic: str) -> BrokerMessage | None:
        """Return the message retained on a topic."""
        return self._retained.get(topic)

    def close(self) -> None:
        """End all connections."""
        for connection in list(self._open_connections):
            connection.end(ReasonCode.SERVER_SHUTTING_DOWN, DisconnectReason.SERVER_INITIATED_DISCONNECT)

    def _direct_session(self, client_id: str, message: BrokerMessage) -> BrokerSession:
        if not is_topic(message.topic) or message.topic.startswith("$") or not fits(self.limits, message.topic):
            raise DataPlaneError("InvalidRequestException", "The topic is not valid")
        if not client_id or client_id.startswith("$") or len(client_id) > self.limits.client_id_bytes:
            raise DataPlaneError("InvalidRequestException", "The client id is not valid")
        if len(message.payload) > self.limits.payload_bytes:
            raise DataPlaneError("RequestEntityTooLargeException", "The payload exceeds the maximum size allowed")
        connection, session = self._connections.get(client_id), self._sessions.get(client_id)
        if session is None:
            raise DataPlaneError("ResourceNotFoundException", "The target client ID is not connected")
        if connection is None:
            raise DataPlaneError(
                "ResourceNotFoundException",
                "The target client ID is not connected, but it has an active persistent session",
            )
        if not self.access.receive(connection.client, message.topic):
            raise DataPlaneError("ForbiddenException", "The receiver may not receive on the topic")
        return session

    def _retain(self, message: BrokerMessage) -> None:
        if not message.payload:
            self._retained.pop(message.topic, None)
        elif message.topic in self._retained or len(self._retained) < self.limits.retained_messages:
            self._retained[message.topic] = message

    def _delete_session(self, session: BrokerSession) -> None:
        for topic_filter in session.subscriptions:
            self.subscribers.remove(session, topic_filter)
        session.subscriptions.clear()
        if session.expiry_timer:
            session.expiry_timer.cancel()
            session.expiry_timer = None
        if self._sessions.get(session.client_id) is session:
            del self._sessions[session.client_id]
