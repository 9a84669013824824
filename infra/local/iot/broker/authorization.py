"""Access rules of the broker, equivalent to the deployed IoT policies."""

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from infra.local.iot.mqtt.topics import has_wildcard
from shared.devices import ids
from shared.devices.ids import BACKEND_PREFIX


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """The identity that a client claims, with its credentials."""

    client_id: str
    user_name: str | None = None
    password: bytes | None = None


class FleetAccessRules:
    """Rules that limit a device to its own two topics, and the backend to the devices' topics and their presence.

    Only `connect` may wait. It raises KhoError if it cannot decide now.
    """

    def __init__(self, backend_token: str, authenticate: Callable[[ClientIdentity], Awaitable[bool]]) -> None:
        self._token = backend_token.encode("utf-8")
        self._authenticate = authenticate

    async def connect(self, client: ClientIdentity) -> bool:
        """Return True if the backend's token is correct, or the device is authenticated."""
        if client.client_id.startswith(BACKEND_PREFIX):
            return client.password is not None and hmac.compare_digest(client.password, self._token)
        return ids.may_be_device(client.client_id) and await self._authenticate(client)

    def publish(self, client: ClientIdentity, topic: str) -> bool:
        """Return True for the device's own `up` topic, and for the backend on all devices' topics."""
        if client.client_id.startswith(BACKEND_PREFIX):
            return topic.startswith("devices/")
        return topic == ids.up(client.client_id)

    def subscribe(self, client: ClientIdentity, topic_filter: str) -> bool:
        """Return True for the device's own `down` topic, and for the backend on all devices' topics."""
        if client.client_id.startswith(BACKEND_PREFIX):
            return topic_filter.startswith(("devices/", "$aws/events/"))
        return not has_wildcard(topic_filter) and self.receive(client, topic_filter)

    def receive(self, client: ClientIdentity, topic: str) -> bool:
        """Return True for the device's own `down` topic, and for the backend on all devices' topics."""
        if client.client_id.startswith(BACKEND_PREFIX):
            return topic.startswith("devices/")
        return topic == ids.down(client.client_id)
