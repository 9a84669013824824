"""Who may connect, publish and subscribe: what the IoT policy says when deployed."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from infra.local.mqtt.topics import has_wildcard
from shared.devices import ids
from shared.devices.ids import BACKEND_PREFIX

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """Who says what it is."""

    client_id: str
    user_name: str | None = None
    password: bytes | None = None
    address: str = ""


class AccessRules(Protocol):
    """The rules that a broker asks; `connect` may take its time, the others may not."""

    async def connect(self, client: ClientIdentity) -> bool:
        """Whether the client is who it says, and may connect; a KhoError where that cannot be told now."""

    def publish(self, client: ClientIdentity, topic: str) -> bool:
        """Whether a connected client may publish on the topic."""

    def subscribe(self, client: ClientIdentity, topic_filter: str) -> bool:
        """Whether a connected client may subscribe to the filter."""

    def receive(self, client: ClientIdentity, topic: str) -> bool:
        """Whether a connected client may be sent a direct message on the topic."""


class FleetAccessRules:
    """A device touches its own two topics; the backend, which knows a token, all devices' topics and their presence."""

    def __init__(self, backend_token: str, admits: Callable[[ClientIdentity], Awaitable[bool]]) -> None:
        self._token = backend_token.encode("utf-8")
        self._admits = admits

    async def connect(self, client: ClientIdentity) -> bool:
        """Whether the backend knows the token, or the device is admitted."""
        if client.client_id.startswith(BACKEND_PREFIX):
            return client.password is not None and hmac.compare_digest(client.password, self._token)
        return ids.may_be_device(client.client_id) and await self._admits(client)

    def publish(self, client: ClientIdentity, topic: str) -> bool:
        """Whether it is the device's `up`, or the backend's to use."""
        if client.client_id.startswith(BACKEND_PREFIX):
            return topic.startswith("devices/")
        return topic == ids.up(client.client_id)

    def subscribe(self, client: ClientIdentity, topic_filter: str) -> bool:
        """Whether it is the device's `down`, or the backend's to use."""
        if client.client_id.startswith(BACKEND_PREFIX):
            return topic_filter.startswith(("devices/", "$aws/events/"))
        return not has_wildcard(topic_filter) and self.receive(client, topic_filter)

    def receive(self, client: ClientIdentity, topic: str) -> bool:
        """Whether it is the device's `down`, or the backend's to use."""
        if client.client_id.startswith(BACKEND_PREFIX):
            return topic.startswith("devices/")
        return topic == ids.down(client.client_id)
