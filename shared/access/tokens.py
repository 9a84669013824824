"""Tokens of an identity provider: JWTs of one issuer and audience, signed with one of its published keys."""

import re
import time
from collections.abc import Callable
from typing import Any, Final

from joserfc import jwt
from joserfc.errors import ExpiredTokenError, InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from shared.access.jwks import JwksClient
from shared.access.models import Clock, Identity
from shared.platform.config import Config
from shared.platform.telemetry import logger
from shared.rpc.caller import ROLES, TENANT_ID, Caller
from shared.rpc.errors import NotSignedIn
from shared.rpc.strict_json import is_encodable

_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
"""Asymmetric signatures alone: with a shared secret its reader could sign, with 'none' anyone could."""
_TYPES: Final = ("jwt", "at+jwt", "application/at+jwt")
"""Accepted values of the header's `typ`: other kinds, such as logout tokens, have the same issuer and audience."""
_LEEWAY_SECONDS: Final = 60
_MAX_SUBJECT: Final = 256


class TokenVerifier:
    """Verifier of the tokens that the settings trust."""

    def __init__(self, settings: Config, clock: Clock = time.time, audience: str = "") -> None:
        self._clock = clock
        self._tenant_claim = settings.oidc_tenant_claim
        self._roles_claim = settings.oidc_roles_claim
        self._jwks = JwksClient(settings.oidc_issuer, settings.oidc_jwks_url, clock)
        self._registry = JWSRegistry(algorithms=_ALGORITHMS, strict_check_header=False)
        self._claims = jwt.JWTClaimsRegistry(
            now=lambda: int(clock()),
            leeway=_LEEWAY_SECONDS,
            iss={"essential": True, "value": settings.oidc_issuer},
            aud={"essential": True, "value": audience or settings.oidc_audience},
            exp={"essential": True},
            sub={"essential": True},
        )

    def verify(self, text: str, nonce: str = "") -> Identity:
        """Return the identity of this token, with this nonce if one is given. Raise NotSignedIn if it is not valid."""
        try:
            token = self._decode(text)
            self._claims.validate(token.claims)
        except ExpiredTokenError:
            raise NotSignedIn("This token is expired.") from None
        except (JoseError, ValueError, TypeError) as error:  # joserfc raises the last two for invalid headers
            logger.info("token refused", extra={"reason": str(error)})
            raise NotSignedIn("This is not a valid token.") from None
        if str(token.header.get("typ", "JWT")).lower() not in _TYPES:
            raise NotSignedIn("This is not an access token.")
        if nonce and token.claims.get("nonce") != nonce:
            raise NotSignedIn("This token is of another sign-in.")
        return Identity(self._caller(token.claims), token.claims["exp"] + _LEEWAY_SECONDS)

    def _decode(self, text: str) -> jwt.Token:
        try:
            return self._decode_with(self._jwks.current, text)
        except InvalidKeyIdError:
            return self._decode_with(self._jwks.refreshed, text)

    def _decode_with(self, keys: Callable[[], KeySet], text: str) -> jwt.Token:
        # The keys are fetched only after the header was accepted.
        return jwt.decode(text, lambda _: keys(), registry=self._registry)

    def _caller(self, claims: dict[str, Any]) -> Caller:
        tenant_id = _claim(claims, self._tenant_claim)
        if not isinstance(tenant_id, str) or not re.fullmatch(TENANT_ID, tenant_id):
            raise NotSignedIn(f"This token names no tenant: its claim '{self._tenant_claim}' must.")
        if len(claims["sub"]) > _MAX_SUBJECT or not is_encodable(claims["sub"]):
            raise NotSignedIn("This token's subject is too long, or not text.")
        claim = _claim(claims, self._roles_claim)
        roles = claim if isinstance(claim, list) else str(claim or "").replace(",", " ").split()
        return Caller(claims["sub"], frozenset(role for role in ROLES if role in roles), tenant_id)


def _claim(claims: dict[str, Any], name: str) -> Any:
    """Return the claim of this name, or else the nested claim that the dots in the name lead to."""
    if name in claims:
        return claims[name]
    claim: Any = claims
    for part in name.split("."):
        claim = claim.get(part) if isinstance(claim, dict) else None
    return claim
