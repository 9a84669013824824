"""Tokens of an identity provider, verified with keys that it publishes on loopback."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.helpers.identity_provider import IdentityProvider, identity_provider
from tests.helpers.token_verification import ShiftedClock

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def shared_provider() -> Iterator[IdentityProvider]:
    """Yield one provider for all tests here. `provider` restores its keys."""
    with identity_provider() as provider:
        yield provider


@pytest.fixture
def provider(shared_provider: IdentityProvider) -> Iterator[IdentityProvider]:
    """Yield the provider with its original keys."""
    keys = dict(shared_provider.keys)
    shared_provider.asked.clear()
    yield shared_provider
    shared_provider.keys, shared_provider.down = keys, False
    shared_provider.publish()


@pytest.fixture
def clock() -> ShiftedClock:
    """Return a clock that tests can advance."""
    return ShiftedClock()
