"""Tokens of an identity provider: JWTs of one issuer, for one audience, signed with a key that it publishes."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, Final

from joserfc import jwt
from joserfc.errors import ExpiredTokenError, InvalidKeyIdError, JoseError
from joserfc.jws import JWSRegistry

from shared.access.jwks import JwksClient
from shared.access.models import Identity
from shared.rpc.caller import ROLES, TENANT_ID, Caller
from shared.rpc.errors import NotSignedIn
from shared.rpc.strict_json import is_encodable
from shared.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from joserfc.jwk import KeySet

    from shared.access.models import Clock
    from shared.config import Config

_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
"""Signatures by a key pair alone: a secret that both sides share would let its reader sign, 'none' anyone."""
_TYPES: Final = ("jwt", "at+jwt", "application/at+jwt")
"""What a header's `typ` may say: other kinds, such as logout tokens, share issuer and audience with ours."""
_LEEWAY_SECONDS: Final = 60
_MAX_SUBJECT: Final = 256


class TokenVerifier:
    """The tokens that the settings trust."""

    def __init__(self, settings: Config, clock: Clock = time.time) -> None:
        self._clock = clock
        self._tenant_claim = settings.oidc_tenant_claim
        self._roles_claim = settings.oidc_roles_claim
        self._published = JwksClient(settings.oidc_issuer, settings.oidc_jwks_url, clock)
        self._registry = JWSRegistry(algorithms=_ALGORITHMS, strict_check_header=False)
        self._claims = jwt.JWTClaimsRegistry(
            now=lambda: int(clock()),
            leeway=_LEEWAY_SECONDS,
            iss={"essential": True, "value": settings.oidc_issuer},
            aud={"essential": True, "value": settings.oidc_audience},
            exp={"essential": True},
            sub={"essential": True},
        )

    def verify(self, text: str) -> Identity:
        """Who bears this token, or NotSignedIn."""
        try:
            token = self._decoded(text)
            self._claims.validate(token.claims)
        except ExpiredTokenError:
            raise NotSignedIn("This token is expired.") from None
        except (JoseError, ValueError, TypeError) as error:  # the last two by joserfc, of headers that are no JOSE
            logger.info("token refused", extra={"reason": str(error)})
            raise NotSignedIn("This is not a valid token.") from None
        if str(token.header.get("typ", "JWT")).lower() not in _TYPES:
            raise NotSignedIn("This is not an access token.")
        return Identity(self._caller(token.claims), token.claims["exp"] + _LEEWAY_SECONDS)

    def _decoded(self, text: str) -> jwt.Token:
        try:
            return self._decoded_with(self._published.current, text)
        except InvalidKeyIdError:
            return self._decoded_with(self._published.refreshed, text)

    def _decoded_with(self, keys: Callable[[], KeySet], text: str) -> jwt.Token:
        # Asked for only when the header is found to be one that we take.
        return jwt.decode(text, lambda _: keys(), registry=self._registry)

    def _caller(self, claims: dict[str, Any]) -> Caller:
        tenant_id = _claim(claims, self._tenant_claim)
        if not isinstance(tenant_id, str) or not re.fullmatch(TENANT_ID, tenant_id):
            raise NotSignedIn(f"This token names no tenant: its claim '{self._tenant_claim}' must.")
        if len(claims["sub"]) > _MAX_SUBJECT or not is_encodable(claims["sub"]):
            raise NotSignedIn("This token's subject is too long, or not text.")
        said = _claim(claims, self._roles_claim)
        named = said if isinstance(said, list) else str(said or "").replace(",", " ").split()
        return Caller(claims["sub"], frozenset(role for role in ROLES if role in named), tenant_id)


def _claim(claims: dict[str, Any], name: str) -> Any:
    """The claim of this name; where there is none, the one that its dots lead to."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found
