"""HTTP client of the configured identity provider: its metadata, and JSON from its endpoints."""

import json
from typing import Any, Final

import urllib3

from shared.platform.config import is_safe_url

_CONNECT_SECONDS: Final = 2.0
_READ_SECONDS: Final = 3.0
_MAX_BYTES: Final = 256 * 1024


class ProviderUnavailable(Exception):
    """The provider gave no usable response."""


class ProviderClient:
    """The client of one provider."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer
        # Redirects are not followed: they could lead away from the configured provider.
        self._http = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=_CONNECT_SECONDS, read=_READ_SECONDS), retries=False
        )

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
        try:
            response = self._http.request(
                method, url, fields=form, headers=headers, preload_content=False, **_encoding(form)
            )
            try:
                body = response.read(_MAX_BYTES)
            finally:
                response.close()
        except urllib3.exceptions.HTTPError as error:
            raise ProviderUnavailable(type(error).__name__) from None
        if response.status != 200:
            raise ProviderUnavailable(f"status {response.status}")
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise ProviderUnavailable("not a JSON object")
        return document


def _encoding(form: dict[str, str] | None) -> dict[str, Any]:
    return {} if form is None else {"encode_multipart": False}
