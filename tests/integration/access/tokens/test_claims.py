"""Claims that identify a caller, and claims that are rejected."""

from __future__ import annotations

from typing import Any

import pytest

from shared.access.credentials import CredentialVerifier
from shared.platform.config import config
from shared.rpc.caller import Caller
from shared.rpc.errors import NotSignedIn
from tests.helpers.identity_provider import AUDIENCE, IdentityProvider
from tests.helpers.token_verification import ShiftedClock, token_verifier, verification_error


@pytest.mark.parametrize(("kid", "alg"), [("rsa", "RS256"), ("rsa", "PS256"), ("ec", "ES256")])
def test_token_identifies_the_caller(provider: IdentityProvider, kid: str, alg: str) -> None:
    claims = provider.claims()
    identity = token_verifier(provider).verify(provider.sign(claims, kid=kid, alg=alg))
    assert identity.caller == Caller("user-1", frozenset({"writer"}), "tenant-asia-01")
    assert identity.expires_at == claims["exp"] + 60


@pytest.mark.parametrize(
    ("changes", "held"),
    [
        ({"roles": ["reader", "admin", "cursor"]}, {"reader", "admin"}),
        ({"roles": "openid reader,writer"}, {"reader", "writer"}),
        ({"roles": None}, set()),
        ({"roles": ["root"]}, set()),
        ({"roles": {"admin": True}}, set()),
        ({"roles": 7}, set()),
        ({"roles": [["admin"], {"admin": 1}]}, set()),
    ],
)
def test_unknown_roles_are_ignored(provider: IdentityProvider, changes: dict[str, Any], held: set[str]) -> None:
    assert token_verifier(provider).verify(provider.token(**changes)).caller.roles == held


def test_claim_names_are_configurable(provider: IdentityProvider) -> None:
    tokens = token_verifier(
        provider, oidc_tenant_claim="https://kho.example/tenant", oidc_roles_claim="realm_access.roles"
    )
    named = {"https://kho.example/tenant": "t-2", "realm_access": {"roles": ["admin"]}}
    assert tokens.verify(provider.token(**named)).caller == Caller("user-1", frozenset({"admin"}), "t-2")
    assert verification_error(tokens, provider.token()) == (
        "This token names no tenant: its claim 'https://kho.example/tenant' must."
    )


def test_one_matching_audience_suffices(provider: IdentityProvider) -> None:
    assert token_verifier(provider).verify(provider.token(aud=["other", AUDIENCE])).caller.sub == "user-1"


def test_clock_skew_of_a_minute_is_tolerated(provider: IdentityProvider, clock: ShiftedClock) -> None:
    tokens, now = token_verifier(provider, clock), int(clock())
    assert tokens.verify(provider.token(exp=now - 50)).caller.sub == "user-1"
    assert tokens.verify(provider.token(nbf=now + 50, iat=now + 50)).caller.sub == "user-1"
    assert verification_error(tokens, provider.token(exp=now - 61)) == "This token is expired."


def test_nonce_is_that_of_the_sign_in(provider: IdentityProvider) -> None:
    tokens = token_verifier(provider)
    assert tokens.verify(provider.token(nonce="first"), "first").caller.sub == "user-1"
    for other in (provider.token(nonce="second"), provider.token()):
        with pytest.raises(NotSignedIn, match="This token is of another sign-in"):
            tokens.verify(other, "first")
    assert tokens.verify(provider.token(nonce="first")).caller.sub == "user-1", "an access token has no sign-in"


def test_token_of_the_provider_in_a_header_proves_its_caller(
    provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KHO_OIDC_ISSUER", provider.issuer)
    monkeypatch.setenv("KHO_OIDC_AUDIENCE", AUDIENCE)
    config.cache_clear()
    try:
        verifier = CredentialVerifier("no table")
        caller = verifier.verify(f"Bearer {provider.token()}").caller
        with pytest.raises(NotSignedIn, match="This is not a valid token"):
            verifier.verify("Bearer a.b.c")
    finally:
        monkeypatch.undo()
        config.cache_clear()
    assert caller == Caller("user-1", frozenset({"writer"}), "tenant-asia-01")


FAR_FUTURE = 4_102_444_800

WRONG_CLAIMS: dict[str, dict[str, Any]] = {
    "another issuer": {"iss": "https://evil.example"},
    "no issuer": {"iss": None},
    "another audience": {"aud": "other"},
    "a part of the audience": {"aud": AUDIENCE[:-1]},
    "no audience": {"aud": None},
    "no audience in the list": {"aud": []},
    "an audience that is not a string": {"aud": {AUDIENCE: 1}},
    "no expiry": {"exp": None},
    "an expiry in words": {"exp": "tomorrow"},
    "an expiry that is true": {"exp": True},
    "not yet valid": {"nbf": FAR_FUTURE},
    "issued in the future": {"iat": FAR_FUTURE},
    "no subject": {"sub": None},
    "an empty subject": {"sub": ""},
    "a subject that is a number": {"sub": 5},
    "a subject that is too long": {"sub": "x" * 257},
    "a subject that is not text": {"sub": "\ud800"},
    "no tenant": {"tenant_id": None},
    "an empty tenant": {"tenant_id": ""},
    "a tenant inside another's keys": {"tenant_id": "tenant#messages"},
    "a tenant and a line feed": {"tenant_id": "tenant\n"},
    "a list of tenants": {"tenant_id": ["tenant-asia-01"]},
}


@pytest.mark.parametrize("wrong", WRONG_CLAIMS)
def test_invalid_claims_are_rejected(provider: IdentityProvider, wrong: str) -> None:
    tokens = token_verifier(provider)
    assert tokens.verify(provider.token()).caller.sub == "user-1"
    assert verification_error(tokens, provider.token(**WRONG_CLAIMS[wrong]))
