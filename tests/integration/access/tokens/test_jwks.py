"""The provider's JWKS: fetched rarely, rotated by the provider, and kept for a while when the provider is down."""

from __future__ import annotations

import pytest

from shared.rpc.errors import Unavailable
from tests.helpers.identity_provider import IdentityProvider, ec_key, unsigned_token
from tests.helpers.token_verification import ShiftedClock, token_verifier, verification_error


def test_keys_are_fetched_once(provider: IdentityProvider) -> None:
    tokens = token_verifier(provider)
    for _ in range(5):
        tokens.verify(provider.token())
    assert provider.asked == ["/.well-known/openid-configuration", "/keys"]
    provider.asked.clear()
    token_verifier(provider, oidc_jwks_url=f"{provider.issuer}/keys").verify(provider.token())
    assert provider.asked == ["/keys"], "where the settings say it, it needs no discovery"


def test_keys_of_other_types_are_no_keys(provider: IdentityProvider) -> None:
    """With a symmetric key its readers could sign."""
    symmetric = {"kty": "oct", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0", "kid": "rsa"}
    edwards = {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "kid": "rsa"}
    provider.serve("/keys", {"keys": [symmetric, edwards]})
    with pytest.raises(Unavailable):
        token_verifier(provider).verify(provider.token())
    provider.publish(symmetric, edwards)
    assert token_verifier(provider).verify(provider.token()).caller.sub == "user-1"


def test_foreign_tokens_do_not_trigger_a_fetch(provider: IdentityProvider) -> None:
    tokens = token_verifier(provider)
    for text in ("x", "a.b.c", unsigned_token({"alg": "none"}, {}), unsigned_token({"alg": "HS256", "kid": "rsa"}, {})):
        assert verification_error(tokens, text)
    assert provider.asked == []


def test_key_rotation(provider: IdentityProvider, clock: ShiftedClock) -> None:
    tokens = token_verifier(provider, clock)
    old = provider.token()
    assert tokens.verify(old).caller.sub == "user-1"
    provider.keys = {"new": ec_key("new")}
    provider.publish()
    clock.ahead = 31
    assert tokens.verify(provider.sign(provider.claims(), kid="new")).caller.sub == "user-1"
    assert verification_error(tokens, old)


def test_withdrawn_keys_expire_after_ten_minutes(provider: IdentityProvider, clock: ShiftedClock) -> None:
    tokens = token_verifier(provider, clock)
    old = provider.token(exp=int(clock()) + 3600)
    del provider.keys["rsa"]
    tokens.verify(old)
    provider.publish()
    clock.ahead = 599
    assert tokens.verify(old).caller.sub == "user-1"
    clock.ahead = 600
    assert verification_error(tokens, old)


def test_unknown_key_ids_do_not_flood_the_provider(provider: IdentityProvider, clock: ShiftedClock) -> None:
    tokens = token_verifier(provider, clock)
    for number in range(20):
        assert verification_error(tokens, unsigned_token({"alg": "RS256", "kid": f"invented-{number}"}, {}, b"x"))
    assert provider.asked.count("/keys") == 1
    clock.ahead = 31
    for number in range(20):
        assert verification_error(tokens, unsigned_token({"alg": "RS256", "kid": f"invented-{number}"}, {}, b"x"))
    assert provider.asked.count("/keys") == 2


def test_cached_keys_stay_valid_for_an_hour_during_an_outage(provider: IdentityProvider, clock: ShiftedClock) -> None:
    tokens = token_verifier(provider, clock)
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


def test_provider_outage_limits_retries(provider: IdentityProvider, clock: ShiftedClock) -> None:
    provider.down = True
    tokens = token_verifier(provider, clock)
    for _ in range(5):
        with pytest.raises(Unavailable):
            tokens.verify(provider.token())
    assert len(provider.asked) == 1
    provider.down = False
    clock.ahead = 31
    assert tokens.verify(provider.token()).caller.sub == "user-1"


def test_keys_are_fetched_after_a_step_back_of_the_clock(provider: IdentityProvider, clock: ShiftedClock) -> None:
    """Otherwise a withdrawn key were trusted, and a new one refused, for as long as the clock was ahead."""
    clock.ahead = 2 * 86_400
    tokens = token_verifier(provider, clock)
    old = provider.token(exp=int(clock()) + 3600)
    assert tokens.verify(old).caller.sub == "user-1"
    provider.keys = {"new": ec_key("new")}
    provider.publish()
    clock.ahead = 0
    assert tokens.verify(provider.sign(provider.claims(), kid="new")).caller.sub == "user-1"
    assert verification_error(tokens, old)


def test_withdrawn_key_is_not_trusted_after_a_step_back_of_the_clock(
    provider: IdentityProvider, clock: ShiftedClock
) -> None:
    clock.ahead = 2 * 86_400
    tokens = token_verifier(provider, clock)
    old = provider.token(exp=int(clock()) + 3600)
    assert tokens.verify(old).caller.sub == "user-1"
    del provider.keys["rsa"]
    provider.publish()
    clock.ahead = 0
    assert verification_error(tokens, old)
