"""Tokens as whoever trusts an identity provider looks at them, at whatever time."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Any

import pytest

from shared.access.tokens import TokenVerifier
from shared.config import config
from shared.rpc.errors import NotSignedIn
from tests.helpers.identity_provider import AUDIENCE, IdentityProvider

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclasses.dataclass(slots=True)
class ShiftedClock:
    """A clock that stands still, as far ahead of its beginning as the test puts it."""

    ahead: float = 0.0
    began: float = dataclasses.field(default_factory=time.time)

    def __call__(self) -> float:
        return self.began + self.ahead


def token_verifier(
    provider: IdentityProvider, clock: Callable[[], float] | None = None, **changes: str
) -> TokenVerifier:
    """Return the verifier of a deployment that trusts this provider."""
    clock = clock or ShiftedClock()
    trusted: dict[str, Any] = {"oidc_issuer": provider.issuer, "oidc_audience": AUDIENCE, **changes}
    return TokenVerifier(dataclasses.replace(config(), **trusted), clock)


def verification_error(tokens: TokenVerifier, text: str) -> str:
    """What is said of a token that is refused."""
    with pytest.raises(NotSignedIn) as refused:
        tokens.verify(text)
    return refused.value.message
