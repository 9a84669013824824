"""The wire to the devices: MQTT connections that are kept between calls, and outlive what happens to them meanwhile.

A function is frozen between its calls. When it wakes, a connection may be dead, or may have lost its subscriptions
while publishing still works. So a subscription is trusted for a moment after it was last heard on; later it is made
anew, and answered, before anything is sent. A connection that was idle beyond what the broker allows is dropped.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from device_server.connection import Connection, Gone
from shared.devices import refusals
from shared.devices.ids import down
from shared.rpc.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from device_server.connection import Subscription
    from device_server.data_plane import DataPlane
    from device_server.place import Place
    from shared.devices.registry import Device

_ATTEMPTS: Final = 2


class MqttLine:
    """Hears devices on their own topics, over as few connections as their number takes."""

    def __init__(self, place: Place, plane: DataPlane | None, take: Callable[[str, bytes], None]) -> None:
        self._place = place
        self._plane = plane
        self._take = take
        self._connections: list[Connection] = []
        self._changing = threading.Lock()

    @contextmanager
    def listening(self, device_id: str, deadline: float) -> Iterator[None]:
        """What the device sends inside is heard; Unavailable where that cannot be had before `deadline`."""
        subscription = self._heard(device_id, deadline)
        try:
            yield
        finally:
            subscription.connection.unpin(subscription)

    def send(self, device: Device, message: bytes) -> None:
        """Send once, never twice; DEVICE_OFFLINE where the device is known not to be connected."""
        if device.downlink == "direct" and self._plane:
            if not self._plane.send_direct_message(device.id, down(device.id), message):
                raise refusals.offline(device.id)
            return
        if self._plane and not self._plane.is_connected(device.id):
            raise refusals.offline(device.id)
        try:
            self._of(device.id).publish(down(device.id), message)
        except Gone:
            raise _not_answering() from None

    def close(self) -> None:
        """Disconnect."""
        with self._changing:
            connections, self._connections = self._connections, []
        for connection in connections:
            connection.close()

    def _heard(self, device_id: str, deadline: float) -> Subscription:
        for _ in range(_ATTEMPTS):
            subscription = self._pinned(device_id)
            try:
                subscription.confirm(deadline)
            except Gone:
                subscription.connection.unpin(subscription)
                self._drop(subscription.connection)
            else:
                return subscription
            if time.monotonic() >= deadline or not subscription.connection.was_connected:
                break
        raise _not_answering()

    def _pinned(self, device_id: str) -> Subscription:
        with self._changing:
            stale = [each for each in self._connections if each.stale]
            self._connections = [each for each in self._connections if not each.stale]
            subscription = self._found(device_id)
        for each in stale:
            each.close()
        return subscription

    def _found(self, device_id: str) -> Subscription:
        """The device's subscription, on the connection that has it, or that has room."""
        for connection in self._connections:
            if found := connection.pin(device_id, known=True):
                return found
        full = len(self._connections) >= self._place.connections
        for evicting in (False, True) if full else (False,):
            for connection in self._connections:
                if found := connection.pin(device_id, evicting=evicting):
                    return found
        connection = Connection(self._place, self._take)
        self._connections.append(connection)
        subscription = connection.pin(device_id)
        assert subscription
        return subscription

    def _of(self, device_id: str) -> Connection:
        with self._changing:
            for connection in self._connections:
                if connection.has(device_id):
                    return connection
        raise Gone

    def _drop(self, connection: Connection) -> None:
        with self._changing:
            if connection in self._connections:
                self._connections.remove(connection)
        connection.close()


def _not_answering() -> Unavailable:
    return Unavailable("The devices' broker is not answering; nothing was sent.")
