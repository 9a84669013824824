"""IoT Core's data plane: direct messages and presence."""

from __future__ import annotations

import json
import time
from typing import Final
from urllib.parse import quote, urlsplit

from shared.aws.signed_client import ConnectionFailed, ConnectionNotEstablished, SignedServiceClient
from shared.rpc.errors import TooLarge, TooManyRequests, Unavailable
from shared.telemetry import logger

_CONNECT_SECONDS: Final = 2.0
_READ_SECONDS: Final = 3.0
_MAX_IDLE_SECONDS: Final = 4.0
"""Below the broker's own limit: a message that is lost with its connection is not sent again."""
_PRESENCE_SECONDS: Final = 2.0
_REMEMBERED: Final = 10_000


class IotDataPlaneClient:
    """The data plane of one account, or of this machine."""

    def __init__(self, url: str) -> None:
        self._service = SignedServiceClient(
            "iotdata",
            connect_seconds=_CONNECT_SECONDS,
            read_seconds=_READ_SECONDS,
            url=url,
            max_idle_seconds=_MAX_IDLE_SECONDS,
        )
        self._root = urlsplit(url).path.rstrip("/")
        self._seen: dict[str, float] = {}

    def send_direct_message(self, client_id: str, topic: str, message: bytes) -> bool:
        """Send one client a message, once; False where it is not connected."""
        status, _ = self._request("POST", client_id, "/messages", message, f"topic={quote(topic, safe='')}")
        if status < 300 or status >= 500:
            return True  # or it may have been sent, and whoever waits will hear
        if status == 404:
            return False
        if status == 413:
            raise TooLarge("The message is larger than a device can be sent.")
        if status == 429:
            raise TooManyRequests("The device does not take its messages as fast as they come; nothing was sent.")
        logger.error("direct message refused", extra={"status": status})
        raise Unavailable("The devices' broker does not take messages; nothing was sent.")

    def is_connected(self, client_id: str) -> bool:
        """Whether a client is connected, or was two seconds ago."""
        now = time.monotonic()
        if self._seen.get(client_id, 0.0) > now - _PRESENCE_SECONDS:
            return True
        status, answer = self._request("GET", client_id)
        if status not in (200, 404):
            raise Unavailable("The devices' broker does not tell who is connected; nothing was sent.")
        connected = status == 200 and json.loads(answer).get("connected") is True
        if connected:
            if len(self._seen) >= _REMEMBERED:
                self._seen.clear()
            self._seen[client_id] = now
        return connected

    def _request(
        self, method: str, client_id: str, what: str = "", body: bytes = b"", query: str = ""
    ) -> tuple[int, bytes]:
        """Status and body of the answer; a message is never sent again, so 504 where none came to what may be heard."""
        path = f"{self._root}/connections/{quote(client_id, safe='')}{what}"
        try:
            status, _, answer = self._service.request(method, path, body, {}, query)
        except ConnectionNotEstablished:
            raise Unavailable("The devices' broker is not answering; nothing was sent.") from None
        except ConnectionFailed as error:
            logger.warning("data plane", extra={"failure": str(error)})
            return 504, b""
        return status, answer
