"""JWKS client: the public keys that an identity provider publishes for verifying its tokens."""

import contextlib
import json
import threading
import time
from typing import Any, Final

import urllib3
from joserfc.errors import JoseError
from joserfc.jwk import KeySet, import_key

from shared.access.models import Clock
from shared.config import is_safe_url
from shared.rpc.errors import Unavailable
from shared.telemetry import logger

_KEY_TYPES: Final = ("RSA", "EC")
_FRESH_SECONDS: Final = 600
_STALE_SECONDS: Final = 3600
"""The longest time that keys are used while the provider does not answer."""
_CONNECT_SECONDS: Final = 2.0
_READ_SECONDS: Final = 3.0
_PAUSE_SECONDS: Final = 30
"""The least time between two fetches, so that tokens with invented key ids cannot make us flood the provider."""
_MAX_BYTES: Final = 256 * 1024


class JwksClient:
    """One provider's keys, fetched on demand."""

    def __init__(self, issuer: str, url: str = "", clock: Clock = time.time) -> None:
        self._issuer = issuer
        self._url = url
        self._clock = clock
        # Redirects are not followed: they could lead away from the configured provider.
        self._http = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=_CONNECT_SECONDS, read=_READ_SECONDS), retries=False
        )
        self._lock = threading.Lock()
        self._keys: KeySet | None = None
        self._fetched_at = self._attempted_at = float("-inf")

    def current(self) -> KeySet:
        """Return the keys, at most ten minutes old."""
        return self._not_older_than(_FRESH_SECONDS)

    def refreshed(self) -> KeySet:
        """Return the keys as they are published now, for a token with an unknown key id."""
        return self._not_older_than(_PAUSE_SECONDS)

    def _not_older_than(self, seconds: float) -> KeySet:
        with self._lock:
            now = self._clock()
            if now - self._fetched_at >= seconds and now - self._attempted_at >= _PAUSE_SECONDS:
                self._attempted_at = now
                try:
                    self._keys = self._fetch()
                except _JwksUnavailable as error:
                    logger.warning("identity provider", extra={"issuer": self._issuer, "failure": str(error)})
                else:
                    self._fetched_at = now
            if self._keys is None or now - self._fetched_at > _STALE_SECONDS:
                raise Unavailable("The identity provider is not answering.")
            return self._keys

    def _fetch(self) -> KeySet:
        published = self._get(self._url or self._discover_url()).get("keys")
        keys = []
        for each in published if isinstance(published, list) else ():
            if isinstance(each, dict) and each.get("kty") in _KEY_TYPES:
                # An unreadable key must not hide the others.
                with contextlib.suppress(JoseError, ValueError, KeyError, TypeError):
                    keys.append(import_key(each))
        if not keys:
            raise _JwksUnavailable("no usable key")
        return KeySet(keys)

    def _discover_url(self) -> str:
        metadata = self._get(f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
        if metadata.get("issuer") != self._issuer:
            raise _JwksUnavailable("the metadata is another issuer's")
        url = metadata.get("jwks_uri")
        if not isinstance(url, str) or not is_safe_url(url):
            raise _JwksUnavailable("no jwks_uri with https")
        return url

    def _get(self, url: str) -> dict[str, Any]:
        try:
            response = self._http.request("GET", url, preload_content=False)
            try:
                body = response.read(_MAX_BYTES)
            finally:
                response.close()
        except urllib3.exceptions.HTTPError as error:
            raise _JwksUnavailable(type(error).__name__) from None
        if response.status != 200:
            raise _JwksUnavailable(f"status {response.status}")
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise _JwksUnavailable("not a JSON object")
        return document


class _JwksUnavailable(Exception):
    pass
