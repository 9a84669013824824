"""The MQTT transport to devices, over connections that are kept between calls.

A function is frozen between invocations. When it resumes, a connection may be dead, or may have lost its subscriptions
while publishing still works. So a subscription is trusted only for a few seconds after the last message on it; later it
is renewed and acknowledged before anything is sent. A connection that idled beyond the broker's keepalive is dropped.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from shared.devices import errors
from shared.devices.ids import down
from shared.devices.mqtt.connection import ConnectionClosed, MqttConnection
from shared.rpc.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shared.devices.mqtt.broker_endpoint import BrokerEndpoint
    from shared.devices.mqtt.connection import Subscription
    from shared.devices.mqtt.data_plane import IotDataPlaneClient
    from shared.devices.registry import RegisteredDevice

_ATTEMPTS: Final = 2
_MAX_DEVICES: Final = 10_000


class MqttTransport:
    """A pool of MQTT connections, as few as the number of devices requires."""

    on_message: Callable[[str, bytes], None]

    def __init__(self, endpoint: BrokerEndpoint, data_plane: IotDataPlaneClient | None) -> None:
        self._endpoint = endpoint
        self._data_plane = data_plane
        self._connections: list[MqttConnection] = []
        self._by_device: dict[str, MqttConnection] = {}
        self._lock = threading.Lock()

    @contextmanager
    def subscribed(self, device_id: str, deadline: float) -> Iterator[None]:
        """Receive the device's messages inside the block. Raise Unavailable if no subscription succeeds in time."""
        subscription = self._subscribe(device_id, deadline)
        try:
            yield
        finally:
            subscription.connection.unpin(subscription)

    def send(self, device: RegisteredDevice, message: bytes) -> None:
        """Send once. Raise DEVICE_OFFLINE if the device is known to be disconnected."""
        try:
            is_connected = self._send(device, down(device.id), message)
        except ConnectionClosed:
            raise broker_unavailable() from None
        if not is_connected:
            raise errors.offline(device.id)

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            connections, self._connections, self._by_device = self._connections, [], {}
        for connection in connections:
            connection.close()

    def _subscribe(self, device_id: str, deadline: float) -> Subscription:
        for _ in range(_ATTEMPTS):
            subscription = self._pinned_subscription(device_id)
            try:
                subscription.confirm(deadline)
            except ConnectionClosed:
                subscription.connection.unpin(subscription)
                if not subscription.connection.connected:
                    break  # it reconnects by itself; the next call may find it connected
                self._drop(subscription.connection)
            else:
                return subscription
        raise broker_unavailable()

    def _pinned_subscription(self, device_id: str) -> Subscription:
        with self._lock:
            connection = self._by_device.get(device_id)
            if connection and not connection.stale and (subscription := connection.pin(device_id, existing=True)):
                return subscription
            stale = [each for each in self._connections if each.stale]
            self._connections = [each for each in self._connections if not each.stale]
            subscription = self._pin_with_room(device_id)
            if len(self._by_device) >= _MAX_DEVICES:
                self._by_device = {
                    each: connection
                    for each, connection in self._by_device.items()
                    if connection.has_subscription(each)
                }
            self._by_device[device_id] = subscription.connection
        for each in stale:
            each.close()
        return subscription

    def _pin_with_room(self, device_id: str) -> Subscription:
        """Pin a subscription on a connection that has room, or on a new one."""
        full = len(self._connections) >= self._endpoint.max_connections
        for evict in (False, True) if full else (False,):
            for connection in reversed(self._connections):
                if subscription := connection.pin(device_id, evict=evict):
                    return subscription
        connection = MqttConnection(self._endpoint, self.on_message)
        self._connections.append(connection)
        new_subscription = connection.pin(device_id)
        assert new_subscription
        return new_subscription

    def _send(self, device: RegisteredDevice, topic: str, message: bytes) -> bool:
        """Send once, by the device's downlink. Return False if it is known to be disconnected."""
        if self._data_plane is None:
            return self._connection_of(device.id).publish_acknowledged(topic, message, device.id)
        if device.downlink == "direct":
            return self._data_plane.send_direct_message(device.id, topic, message)
        if not self._data_plane.is_connected(device.id):
            return False
        self._connection_of(device.id).publish(topic, message)
        return True

    def _connection_of(self, device_id: str) -> MqttConnection:
        with self._lock:
            connection = self._by_device.get(device_id)
        if connection is None:
            raise broker_unavailable()
        return connection

    def _drop(self, dropped: MqttConnection) -> None:
        """Remove a connection from the pool. Pending replies may still arrive on it."""
        with self._lock:
            if dropped in self._connections:
                self._connections.remove(dropped)
            self._by_device = {
                each: connection for each, connection in self._by_device.items() if connection is not dropped
            }
        dropped.retire()


def broker_unavailable() -> Unavailable:
    """Build the error of a message that the broker did not take."""
    return Unavailable("The devices' broker is not answering; nothing was sent.")
