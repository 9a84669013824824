"""The wire to the devices: MQTT connections that are kept between calls, and outlive what happens to them meanwhile.

A function is frozen between its calls. When it wakes, a connection may be dead, or may have lost its subscriptions
while publishing still works. So a subscription is trusted for a moment after it was last heard on; later it is made
anew, and answered, before anything is sent. A connection that was idle beyond what the broker allows is dropped.
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
_REMEMBERED: Final = 10_000


class MqttTransport:
    """Hears devices on their own topics, over as few connections as their number takes."""

    def __init__(
        self, place: BrokerEndpoint, plane: IotDataPlaneClient | None, take: Callable[[str, bytes], None]
    ) -> None:
        self._place = place
        self._plane = plane
        self._take = take
        self._connections: list[MqttConnection] = []
        self._by_device: dict[str, MqttConnection] = {}
        self._changing = threading.Lock()

    @contextmanager
    def subscribed(self, device_id: str, deadline: float) -> Iterator[None]:
        """What the device sends inside is heard; Unavailable where that cannot be had before `deadline`."""
        subscription = self._receive(device_id, deadline)
        try:
            yield
        finally:
            subscription.connection.unpin(subscription)

    def send(self, device: RegisteredDevice, message: bytes) -> None:
        """Send once, never twice; DEVICE_OFFLINE where the device is known not to be connected."""
        try:
            known = self._send(device, down(device.id), message)
        except ConnectionClosed:
            raise _not_answering() from None
        if not known:
            raise errors.offline(device.id)

    def _send(self, device: RegisteredDevice, topic: str, message: bytes) -> bool:
        """Send once, by the way that the device is reached; False where it is known not to be connected."""
        if self._plane is None:
            return self._of(device.id).publish_acknowledged(topic, message, device.id)
        if device.downlink == "direct":
            return self._plane.send_direct_message(device.id, topic, message)
        if not self._plane.is_connected(device.id):
            return False
        self._of(device.id).publish(topic, message)
        return True

    def close(self) -> None:
        """Disconnect."""
        with self._changing:
            connections, self._connections, self._by_device = self._connections, [], {}
        for connection in connections:
            connection.close()

    def _receive(self, device_id: str, deadline: float) -> Subscription:
        for _ in range(_ATTEMPTS):
            subscription = self._pinned(device_id)
            try:
                subscription.confirm(deadline)
            except ConnectionClosed:
                subscription.connection.unpin(subscription)
                if not subscription.connection.connected:
                    break  # it goes on trying by itself, and the next call may find it connected
                self._drop(subscription.connection)
            else:
                return subscription
        raise _not_answering()

    def _pinned(self, device_id: str) -> Subscription:
        with self._changing:
            connection = self._by_device.get(device_id)
            if connection and not connection.stale and (found := connection.pin(device_id, known=True)):
                return found
            stale = [each for each in self._connections if each.stale]
            self._connections = [each for each in self._connections if not each.stale]
            subscription = self._find_subscription(device_id)
            if len(self._by_device) >= _REMEMBERED:
                self._by_device = {each: where for each, where in self._by_device.items() if where.carries(each)}
            self._by_device[device_id] = subscription.connection
        for each in stale:
            each.close()
        return subscription

    def _find_subscription(self, device_id: str) -> Subscription:
        """A subscription for the device, on a connection that has room."""
        full = len(self._connections) >= self._place.connections
        for evicting in (False, True) if full else (False,):
            for connection in reversed(self._connections):
                if found := connection.pin(device_id, evicting=evicting):
                    return found
        connection = MqttConnection(self._place, self._take)
        self._connections.append(connection)
        subscription = connection.pin(device_id)
        assert subscription
        return subscription

    def _of(self, device_id: str) -> MqttConnection:
        with self._changing:
            connection = self._by_device.get(device_id)
        if connection is None:
            raise _not_answering()
        return connection

    def _drop(self, connection: MqttConnection) -> None:
        """Use a connection no more; who still waits for something there may yet hear it."""
        with self._changing:
            if connection in self._connections:
                self._connections.remove(connection)
            self._by_device = {each: where for each, where in self._by_device.items() if where is not connection}
        connection.retire()


def _not_answering() -> Unavailable:
    return Unavailable("The devices' broker is not answering; nothing was sent.")
