"""Who may connect, publish and subscribe: what the IoT policy says when deployed."""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from infra.local.mqtt.topics import has_wildcard

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

BACKEND_PREFIX: Final = "kho-backend-"
"""How the client ids of the backend's own connections begin; no device's may."""

_DEVICE_ID: Final = re.compile(r"[^$/+#\0][^/+#\0]*")


@dataclass(frozen=True, slots=True)
class Client:
    """Who says what it is."""

    client_id: str
    user_name: str | None = None
    password: bytes | None = None
    address: str = ""


class Access(Protocol):
    """The rules that a broker asks; `connect` may take its time, the others may not."""

    async def connect(self, client: Client) -> bool:
        """Whether the client is who it says, and may connect; a KhoError where that cannot be told now."""

    def publish(self, client: Client, topic: str) -> bool:
        """Whether a connected client may publish on the topic."""

    def subscribe(self, client: Client, topic_filter: str) -> bool:
        """Whether a connected client may subscribe to the filter."""

    def receive(self, client: Client, topic: str) -> bool:
        """Whether a connected client may be sent a direct message on the topic."""


async def everyone(_: Client) -> bool:
    """Any device, as in open mode."""
    return True


async def nobody(_: Client) -> bool:
    """No device, as where none is registered."""
    return False


class FleetAccess:
    """A device touches its own two topics; the backend, which knows a token, all devices' topics and their presence."""

    def __init__(self, backend_token: str, admits: Callable[[Client], Awaitable[bool]]) -> None:
        self._token = backend_token.encode("utf-8")
        self._admits = admits

    async def connect(self, client: Client) -> bool:
        """Whether the backend knows the token, or the device is admitted."""
        if client.client_id.startswith(BACKEND_PREFIX):
            return client.password is not None and hmac.compare_digest(client.password, self._token)
        # With a wildcard or a level of its own in the id, a device's own topics would be another's.
        return _DEVICE_ID.fullmatch(client.client_id) is not None and await self._admits(client)

    def publish(self, client: Client, topic: str) -> bool:
        """Whether it is the device's `up`, or the backend's to use."""
        if client.client_id.startswith(BACKEND_PREFIX):
            return topic.startswith("devices/")
        return topic == f"devices/{client.client_id}/up"

    def subscribe(self, client: Client, topic_filter: str) -> bool:
        """Whether it is the device's `down`, or the backend's to use."""
        if client.client_id.startswith(BACKEND_PREFIX):
            return topic_filter.startswith(("devices/", "$aws/events/"))
        return not has_wildcard(topic_filter) and self.receive(client, topic_filter)

    def receive(self, client: Client, topic: str) -> bool:
        """Whether it is the device's `down`, or the backend's to use."""
        if client.client_id.startswith(BACKEND_PREFIX):
            return topic.startswith("devices/")
        return topic == f"devices/{client.client_id}/down"
