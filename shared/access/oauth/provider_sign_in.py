"""Sign-in with the configured OIDC provider: an authorization code with PKCE and a nonce (OpenID Connect Core, 3.1).

The code verifier and the nonce follow from the state, which only the browser and the provider have, and from a random
number that only the store has. Neither alone suffices, so no secret is stored.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote_plus, urlencode

from shared.access.oauth.errors import OAuthError
from shared.access.provider_client import ProviderClient, ProviderUnavailable
from shared.aws.secrets_manager import get_secret
from shared.platform.telemetry import logger
from shared.rpc.errors import NotSignedIn, Unavailable

if TYPE_CHECKING:
    from shared.access.models import Clock
    from shared.platform.config import Config
    from shared.rpc.caller import Caller

CALLBACK: Final = "/oauth/callback"


@dataclass(frozen=True, slots=True)
class SignInState:
    """One visit to the provider: its state, and the random number in the store."""

    state: str
    number: str
    request: str
    """The hash of the handle of the authorization request."""

    @classmethod
    def new(cls, request: str) -> SignInState:
        """Return the state of a new visit."""
        return cls(secrets.token_urlsafe(32), secrets.token_urlsafe(32), request)

    def derive(self, purpose: str) -> str:
        """Return the secret of this visit for a purpose."""
        digest = hmac.digest(self.number.encode(), f"{purpose} {self.state}".encode(), "sha256")
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


class ProviderSignIn:
    """Sign-in with one provider."""

    def __init__(self, settings: Config, clock: Clock = time.time) -> None:
        self._settings = settings
        self._clock = clock
        self._provider = ProviderClient(settings.oidc_issuer)

    def address(self, visit: SignInState) -> str:
        """Return the address at the provider to which the browser goes."""
        challenge = hashlib.sha256(visit.derive("verifier").encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self._settings.oidc_client_id,
            "redirect_uri": self._settings.public_url + CALLBACK,
            "scope": self._settings.oidc_scopes,
            "state": visit.state,
            "nonce": visit.derive("nonce"),
            "code_challenge": base64.urlsafe_b64encode(challenge).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        try:
            endpoint = self._provider.discover("authorization_endpoint")
        except ProviderUnavailable as error:
            raise self._unavailable(error) from None
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    def caller(self, code: str, visit: SignInState) -> Caller:
        """Return the person whom the provider has signed in. Raise OAuthError if it has not."""
        from shared.access.tokens import TokenVerifier  # imports cryptography

        settings = self._settings
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": settings.public_url + CALLBACK,
            "client_id": settings.oidc_client_id,
            "code_verifier": visit.derive("verifier"),
        }
        try:
            endpoint = self._provider.discover("token_endpoint")
            tokens = self._provider.request("POST", endpoint, form, _credentials(settings.oidc_client_id))
        except ProviderUnavailable as error:
            raise self._unavailable(error) from None
        verifier = TokenVerifier(settings, self._clock, settings.oidc_client_id)
        try:
            return verifier.verify(str(tokens.get("id_token", "")), visit.derive("nonce")).caller
        except NotSignedIn as error:
            raise OAuthError("access_denied", f"The identity provider's answer is refused. {error.message}") from None

    def _unavailable(self, error: ProviderUnavailable) -> Unavailable:
        logger.warning("identity provider", extra={"issuer": self._settings.oidc_issuer, "failure": str(error)})
        return Unavailable("The identity provider is not answering, or refuses this sign-in.")


def _credentials(client_id: str) -> dict[str, str]:
    """Return the header with Kho's own credentials at the provider; none for a public client."""
    secret = get_secret("KHO_OIDC_CLIENT_SECRET")
    if not secret:
        return {}
    pair = f"{quote_plus(client_id)}:{quote_plus(secret)}".encode()
    return {"authorization": f"Basic {base64.b64encode(pair).decode()}"}
