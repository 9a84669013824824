"""The provider's keys: fetched seldom, changed by the provider, and kept for a while when it is down."""

from __future__ import annotations

import pytest

from shared.rpc.errors import Unavailable
from tests.identity_provider import IdentityProvider, ec_key, unsigned
from tests.integration.tokens.trusting import ShiftedClock, refusal, trusting


def test_keys_are_fetched_once(provider: IdentityProvider) -> None:
    tokens = trusting(provider)
    for _ in range(5):
        tokens.verify(provider.token())
    assert provider.asked == ["/.well-known/openid-configuration", "/keys"]
    provider.asked.clear()
    trusting(provider, oidc_jwks_url=f"{provider.issuer}/keys").verify(provider.token())
    assert provider.asked == ["/keys"], "where the settings say it, it needs no discovery"


def test_what_could_not_be_ours_does_not_ask_the_provider(provider: IdentityProvider) -> None:
    tokens = trusting(provider)
    for text in ("x", "a.b.c", unsigned({"alg": "none"}, {}), unsigned({"alg": "HS256", "kid": "rsa"}, {})):
        assert refusal(tokens, text)
    assert provider.asked == []


def test_new_keys_are_found_and_withdrawn_ones_forgotten(provider: IdentityProvider, clock: ShiftedClock) -> None:
    tokens = trusting(provider, clock)
    old = provider.token()
    assert tokens.verify(old).caller.sub == "user-1"
    provider.keys = {"new": ec_key("new")}
    provider.publish()
    clock.ahead = 31
    assert tokens.verify(provider.sign(provider.claims(), kid="new")).caller.sub == "user-1"
    assert refusal(tokens, old)


def test_withdrawn_keys_are_forgotten_in_ten_minutes(provider: IdentityProvider, clock: ShiftedClock) -> None:
    tokens = trusting(provider, clock)
    old = provider.token(exp=int(clock()) + 3600)
    del provider.keys["rsa"]
    tokens.verify(old)
    provider.publish()
    clock.ahead = 599
    assert tokens.verify(old).caller.sub == "user-1"
    clock.ahead = 600
    assert refusal(tokens, old)


def test_invented_key_ids_do_not_flood_the_provider(provider: IdentityProvider, clock: ShiftedClock) -> None:
    tokens = trusting(provider, clock)
    for number in range(20):
        assert refusal(tokens, unsigned({"alg": "RS256", "kid": f"invented-{number}"}, {}, b"x"))
    assert provider.asked.count("/keys") == 1
    clock.ahead = 31
    for number in range(20):
        assert refusal(tokens, unsigned({"alg": "RS256", "kid": f"invented-{number}"}, {}, b"x"))
    assert provider.asked.count("/keys") == 2


def test_known_keys_outlive_the_provider_by_an_hour(provider: IdentityProvider, clock: ShiftedClock) -> None:
    tokens = trusting(provider, clock)
    token = provider.token(exp=int(clock()) + 10_000)
    assert tokens.verify(token).caller.sub == "user-1"
    provider.down = True
    for clock.ahead in (700, 3500):
        assert tokens.verify(token).caller.sub == "user-1"
    clock.ahead = 3700
    with pytest.raises(Unavailable):
        tokens.verify(token)
    provider.down = False
    clock.ahead = 3731
    assert tokens.verify(token).caller.sub == "user-1"


def test_a_provider_that_is_down_is_asked_now_and_then(provider: IdentityProvider, clock: ShiftedClock) -> None:
    provider.down = True
    tokens = trusting(provider, clock)
    for _ in range(5):
        with pytest.raises(Unavailable):
            tokens.verify(provider.token())
    assert len(provider.asked) == 1
    provider.down = False
    clock.ahead = 31
    assert tokens.verify(provider.token()).caller.sub == "user-1"
