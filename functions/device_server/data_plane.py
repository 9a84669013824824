"""IoT Core's data plane: direct messages and presence, by requests that are signed here.

boto3 does the same, and takes several times as long, which at a warm call would be most of what is added.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from shared.config import ConfigurationError
from shared.rpc.errors import TooLarge, TooManyRequests, Unavailable
from shared.telemetry import logger

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

_SECONDS: Final = 3.0
_PRESENCE_SECONDS: Final = 2.0
_REMEMBERED: Final = 10_000


class DataPlane:
    """The data plane of one account, or of this machine."""

    def __init__(self, url: str) -> None:
        import urllib3
        from botocore.auth import SigV4Auth
        from botocore.session import get_session

        session = get_session()
        region = session.get_config_variable("region") or os.environ.get("AWS_REGION", "us-east-1")
        self._url = url.rstrip("/")
        credentials = session.get_credentials()
        if credentials is None:
            raise ConfigurationError("There are no AWS credentials to reach devices with")
        self._signer = SigV4Auth(credentials, "iotdata", region)
        # A message that was sent is never sent again: no retries, whatever happens.
        self._http = urllib3.PoolManager(maxsize=300, retries=False, timeout=urllib3.Timeout(connect=2, read=_SECONDS))
        self._seen: dict[str, float] = {}

    def send_direct_message(self, client_id: str, topic: str, message: bytes) -> bool:
        """Send one client a message, once; False where it is not connected."""
        path = f"/connections/{quote(client_id, safe='')}/messages?topic={quote(topic, safe='')}"
        response = self._request("POST", path, message)
        if response is None or response.status < 300:
            return True
        if response.status == 404:
            return False
        if response.status == 413:
            raise TooLarge("The message is larger than a device can be sent.")
        if response.status == 429:
            raise TooManyRequests("The device does not take its messages as fast as they come; nothing was sent.")
        if response.status >= 500:
            return True  # it may have been sent: whoever waits will hear
        logger.error("direct message refused", extra={"status": response.status})
        raise Unavailable("The devices' broker does not take messages; nothing was sent.")

    def is_connected(self, client_id: str) -> bool:
        """Whether a client is connected, or was two seconds ago."""
        now = time.monotonic()
        if self._seen.get(client_id, 0.0) > now - _PRESENCE_SECONDS:
            return True
        response = self._request("GET", f"/connections/{quote(client_id, safe='')}")
        if response is None or response.status not in (200, 404):
            raise Unavailable("The devices' broker does not tell who is connected; nothing was sent.")
        connected = response.status == 200 and json.loads(response.data).get("connected") is True
        if connected:
            if len(self._seen) >= _REMEMBERED:
                self._seen.clear()
            self._seen[client_id] = now
        return connected

    def _request(self, method: str, path: str, body: bytes = b"") -> BaseHTTPResponse | None:
        """The answer, None where none came to what may have been sent."""
        import urllib3
        from botocore.awsrequest import AWSRequest

        url = self._url + path
        request = AWSRequest(method=method, url=url, data=body)
        self._signer.add_auth(request)
        try:
            return self._http.request(method, url, body=body, headers=dict(request.headers.items()))
        except (urllib3.exceptions.ConnectTimeoutError, urllib3.exceptions.NewConnectionError):
            raise Unavailable("The devices' broker is not answering; nothing was sent.") from None
        except urllib3.exceptions.HTTPError as error:
            logger.warning("data plane", extra={"failure": type(error).__name__})
            return None
