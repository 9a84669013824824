"""HTTP client of the configured identity provider: its metadata, and JSON from its endpoints."""

import json
from typing import Any, Final
from urllib.parse import urlencode

from shared.platform.config import is_safe_url
from shared.platform.http import ConnectionFailed, send_once

_SECONDS: Final = 3.0


class ProviderUnavailable(Exception):
    """The provider gave no usable response."""


class ProviderClient:
    """The client of one provider. It follows no redirect, which could lead away from the configured provider."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer

    def discover(self, endpoint: str) -> str:
        """Return the address of an endpoint from the provider's metadata."""
        metadata = self.request("GET", f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
        if metadata.get("issuer") != self._issuer:
            raise ProviderUnavailable("the metadata is another issuer's")
        url = metadata.get(endpoint)
        if not isinstance(url, str) or not is_safe_url(url):
            raise ProviderUnavailable(f"no {endpoint} with https")
        return url

    def request(
        self, method: str, url: str, form: dict[str, str] | None = None, headers: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """Send a request, with a form if given. Return the JSON object of the response."""
        headers = {"accept": "application/json", **(headers or {})}
        if form is not None:
            headers["content-type"] = "application/x-www-form-urlencoded"
        try:
            status, _, body = send_once(method, url, headers, urlencode(form or {}).encode(), _SECONDS)
        except ConnectionFailed as error:
            raise ProviderUnavailable(str(error)) from None
        if status != 200:
            raise ProviderUnavailable(f"status {status}")
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise ProviderUnavailable("not a JSON object")
        return document
