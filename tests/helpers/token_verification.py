"""Verification of tokens at a time that the test sets."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Any

import pytest

from shared.access.tokens import TokenVerifier
from shared.rpc.errors import NotSignedIn
from tests.helpers.identity_provider import AUDIENCE, IdentityProvider
from tests.helpers.settings import changed_settings

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclasses.dataclass(slots=True)
class ShiftedClock:
    """A clock that stands still at an offset that the test sets."""

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
    return TokenVerifier(changed_settings(**trusted), clock)


def verification_error(tokens: TokenVerifier, text: str) -> str:
    """Return the error message for a rejected token."""
    with pytest.raises(NotSignedIn) as refused:
        tokens.verify(text)
    return refused.value.message
