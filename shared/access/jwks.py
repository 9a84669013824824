"""JWKS client: the public keys that an identity provider publishes for verifying its tokens."""

import contextlib
import threading
import time
from typing import Final

from joserfc.errors import JoseError
from joserfc.jwk import KeySet, import_key

from shared.access.models import Clock
from shared.access.provider_client import ProviderClient, ProviderUnavailable
from shared.platform.telemetry import logger
from shared.rpc.errors import Unavailable

_KEY_TYPES: Final = ("RSA", "EC")
_FRESH_SECONDS: Final = 600
_STALE_SECONDS: Final = 3600
"""The longest time that keys are used while the provider does not answer."""
_PAUSE_SECONDS: Final = 30
"""The least time between two fetches, so that tokens with invented key ids cannot make us flood the provider."""


class JwksClient:
    """One provider's keys, fetched on demand."""

    def __init__(self, issuer: str, url: str = "", clock: Clock = time.time) -> None:
        self._issuer = issuer
        self._url = url
        self._clock = clock
        self._provider = ProviderClient(issuer)
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
            # After a step back of the clock, the keys are of any age.
            if not 0 <= now - self._fetched_at < seconds and not 0 <= now - self._attempted_at < _PAUSE_SECONDS:
                self._attempted_at = now
                try:
                    self._keys = self._fetch()
                except ProviderUnavailable as error:
                    logger.warning("identity provider", extra={"issuer": self._issuer, "failure": str(error)})
                else:
                    self._fetched_at = now
            if self._keys is None or not 0 <= now - self._fetched_at <= _STALE_SECONDS:
                raise Unavailable("The identity provider is not answering.")
            return self._keys

    def _fetch(self) -> KeySet:
        published = self._provider.request("GET", self._url or self._provider.discover("jwks_uri")).get("keys")
        keys = []
        for each in published if isinstance(published, list) else ():
            if isinstance(each, dict) and each.get("kty") in _KEY_TYPES:
                # An unreadable key must not hide the others.
                with contextlib.suppress(JoseError, ValueError, KeyError, TypeError):
                    keys.append(import_key(each))
        if not keys:
            raise ProviderUnavailable("no usable key")
        return KeySet(keys)
