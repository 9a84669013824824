"""A client of IoT Core's data plane: direct messages and presence."""

import json
from functools import cache
from typing import Final
from urllib.parse import quote, urlsplit

from shared.aws.signed_client import SignedServiceClient
from shared.platform.config import config
from shared.platform.http import ConnectionFailed, ConnectionNotEstablished
from shared.platform.telemetry import logger
from shared.platform.ttl_cache import TtlCache
from shared.rpc.errors import TooLarge, TooManyRequests, Unavailable

_CONNECT_SECONDS: Final = 2.0
_READ_SECONDS: Final = 3.0
_MAX_IDLE_SECONDS: Final = 4.0
"""Connections are reused only briefly: a message that is lost with its connection is not sent again."""
_PRESENCE_SECONDS: Final = 2.0


class IotDataPlaneClient:
    """The data plane of one account, or of the local server."""

    def __init__(self, url: str) -> None:
        self._service = SignedServiceClient(
            "iotdata",
            connect_seconds=_CONNECT_SECONDS,
            read_seconds=_READ_SECONDS,
            url=url,
            max_idle_seconds=_MAX_IDLE_SECONDS,
        )
        self._root = urlsplit(url).path.rstrip("/")
        self._recently_connected: TtlCache[str, bool] = TtlCache(_PRESENCE_SECONDS, capacity=10_000)

    def send_direct_message(self, client_id: str, topic: str, message: bytes) -> bool:
        """Send one client a message, once. Return False if the client is not connected."""
        status, _ = self._request("POST", client_id, "/messages", message, f"topic={quote(topic, safe='')}")
        return was_sent(status)

    def is_connected(self, client_id: str) -> bool:
        """Return True if the client is connected, or was two seconds ago."""
        if self._recently_connected.get(client_id):
            return True
        status, body = self._request("GET", client_id)
        if status not in (200, 404):
            raise Unavailable("The devices' broker does not report presence; nothing was sent.")
        connected = status == 200 and json.loads(body).get("connected") is True
        return connected and self._recently_connected.put(client_id, value=True)

    def disconnect(self, client_id: str) -> None:
        """Close the client's connection, if there is one."""
        status, _ = self._request("DELETE", client_id)
        if status not in (200, 404):
            raise Unavailable("The devices' broker did not close the connection.")

    def _request(
        self, method: str, client_id: str, suffix: str = "", body: bytes = b"", query: str = ""
    ) -> tuple[int, bytes]:
        """Return the response's status and body; 504 if a request that may have been processed got no response."""
        path = f"{self._root}/connections/{quote(client_id, safe='')}{suffix}"
        try:
            status, _, response = self._service.request(method, path, body, {}, query)
        except ConnectionNotEstablished:
            raise Unavailable("The devices' broker is not answering; nothing was sent.") from None
        except ConnectionFailed as error:
            logger.warning("data plane", extra={"failure": str(error)})
            return 504, b""
        return status, response


def was_sent(status: int) -> bool:
    """Return False if the response to a direct message says that the client is not connected."""
    if status < 300 or status >= 500:
        return True  # a failed request may have been processed; the caller waits for the reply
    if status == 404:
        return False
    if status == 413:
        raise TooLarge("The message exceeds the maximum message size of devices.")
    if status == 429:
        raise TooManyRequests("The device does not read its messages fast enough; nothing was sent.")
    logger.error("direct message refused", extra={"status": status})
    raise Unavailable("The devices' broker rejected the message; nothing was sent.")


@cache
def data_plane() -> IotDataPlaneClient | None:
    """Return this process's client of IoT Core's or the local data plane, or None if the broker has none."""
    url = config().data_plane
    return IotDataPlaneClient(url) if url else None
