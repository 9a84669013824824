"""Tokens as whoever trusts an identity provider looks at them, at whatever time."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Any

import pytest

from shared.access.tokens import Tokens
from shared.config import config
from shared.rpc.errors import NotSignedIn
from tests.identity_provider import AUDIENCE, IdentityProvider

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclasses.dataclass(slots=True)
class ShiftedClock:
    """The real clock, put forward."""

    ahead: float = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


def trusting(provider: IdentityProvider, clock: Callable[[], float] = time.time, **changes: str) -> Tokens:
    """Whoever trusts this provider."""
    trusted: dict[str, Any] = {"oidc_issuer": provider.issuer, "oidc_audience": AUDIENCE, **changes}
    return Tokens(dataclasses.replace(config(), **trusted), clock)


def refusal(tokens: Tokens, text: str) -> str:
    """What is said of a token that is refused."""
    with pytest.raises(NotSignedIn) as refused:
        tokens.verify(text)
    return refused.value.message
