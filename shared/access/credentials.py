"""Verification of the Authorization header, for the gateway's authorizer and for routes without one."""

from __future__ import annotations

import hashlib
import time
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final

from shared.access.api_keys import PREFIX, ApiKeys
from shared.access.oauth.token_text import ACCESS_PREFIX
from shared.aws.dynamodb import Table
from shared.platform.config import config
from shared.platform.ttl_cache import TtlCache
from shared.rpc.errors import NotSignedIn

if TYPE_CHECKING:
    from shared.access.models import Clock, Identity
    from shared.access.oauth.grants import Grants
    from shared.access.tokens import TokenVerifier

CACHE_SECONDS: Final = 60
"""The longest time that a revoked key stays valid."""
_MAX_CREDENTIAL: Final = 8192


class CredentialVerifier:
    """Verifies keys, access tokens, and tokens of the identity provider where one is configured."""

    def __init__(self, table: str, clock: Clock = time.time) -> None:
        self._table = table
        self._clock = clock

    def verify(self, authorization: str) -> Identity:
        """Return the identity that the header proves. Raise NotSignedIn if it proves none."""
        scheme, _, credential = authorization.strip().partition(" ")
        credential = credential.strip()
        if scheme.lower() != "bearer" or not credential.isascii() or not 1 <= len(credential) <= _MAX_CREDENTIAL:
            raise NotSignedIn("Authorization must be 'Bearer' and a key or a token.")
        if credential.startswith(PREFIX):
            return self._keys.verify(credential)
        if credential.startswith(ACCESS_PREFIX):
            return self._grants.verify(credential)
        if not config().oidc_issuer:
            raise NotSignedIn("This is not a valid key.")
        return self._tokens.verify(credential)

    @cached_property
    def _keys(self) -> ApiKeys:
        return ApiKeys(Table(self._table), self._clock)

    @cached_property
    def _grants(self) -> Grants:
        from shared.access.oauth.grants import Grants

        return Grants(Table(self._table), self._clock)

    @cached_property
    def _tokens(self) -> TokenVerifier:
        from shared.access.tokens import TokenVerifier  # imports cryptography, which keys do not need

        return TokenVerifier(config(), self._clock)


class CachingVerifier:
    """A verifier that caches accepted credentials for a minute; rejected ones are verified again."""

    def __init__(self, verifier: CredentialVerifier, clock: Clock = time.time, *, capacity: int = 1000) -> None:
        self._verifier = verifier
        self._clock = clock
        self._identities: TtlCache[bytes, Identity] = TtlCache(CACHE_SECONDS, clock=clock, capacity=capacity)

    def verify(self, authorization: str) -> Identity:
        """Return the caller's identity or raise NotSignedIn."""
        digest = hashlib.sha256(authorization.encode("utf-8", "surrogatepass")).digest()
        identity = self._identities.get(digest)
        if identity is None:
            latest = self._clock() + CACHE_SECONDS  # a key may be revoked while it is verified
            identity = self._verifier.verify(authorization)
            self._identities.put(digest, identity, expires_at=min(latest, identity.expires_at or latest))
        return identity


@cache
def verifier() -> CredentialVerifier:
    """Return this process's verifier, for the authorizer, whose answers the gateway caches."""
    return CredentialVerifier(config().access_table)


@cache
def cached_verifier() -> CachingVerifier:
    """Return this process's caching verifier, for routes without an authorizer."""
    return CachingVerifier(verifier())
