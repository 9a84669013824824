"""Malformed, oversized and foreign responses of the identity provider."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from shared.rpc.errors import Unavailable
from tests.helpers.token_verification import token_verifier

if TYPE_CHECKING:
    from tests.helpers.identity_provider import IdentityProvider


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.example", "jwks_uri": "{issuer}/keys"},
        {"jwks_uri": "{issuer}/keys"},
        {"issuer": "{issuer}", "jwks_uri": "{roundabout}/keys"},
        {"issuer": "{issuer}", "jwks_uri": "file:///etc/passwd"},
        {"issuer": "{issuer}", "jwks_uri": 5},
        ["{issuer}"],
    ],
)
def test_metadata_of_another_issuer_is_rejected(provider: IdentityProvider, metadata: Any) -> None:
    token = provider.token()
    # The same server, under another name.
    roundabout = provider.issuer.replace("127.0.0.1", "127.1")
    text = json.dumps(metadata).replace("{issuer}", provider.issuer).replace("{roundabout}", roundabout)
    provider.serve("/.well-known/openid-configuration", json.loads(text))
    with pytest.raises(Unavailable):
        token_verifier(provider).verify(token)
    assert "/keys" not in provider.asked


@pytest.mark.parametrize(
    "page", [[], {}, {"keys": []}, {"keys": "none"}, {"keys": [5, "key", {"kty": "RSA"}, {"kty": "new"}]}]
)
def test_jwks_without_usable_key_is_an_error(provider: IdentityProvider, page: Any) -> None:
    provider.serve("/keys", page)
    with pytest.raises(Unavailable):
        token_verifier(provider).verify(provider.token())


def test_oversized_provider_response_is_rejected(provider: IdentityProvider) -> None:
    keys = json.loads(provider.pages["/keys"][2])
    provider.serve("/keys", keys | {"padding": "x" * 200_000})
    assert token_verifier(provider).verify(provider.token()).caller.sub == "user-1"
    provider.serve("/keys", keys | {"padding": "x" * 300_000})
    with pytest.raises(Unavailable):
        token_verifier(provider).verify(provider.token())


def test_redirects_are_not_followed(provider: IdentityProvider) -> None:
    provider.pages["/elsewhere"] = provider.pages["/keys"]
    provider.pages["/keys"] = (302, {"location": f"{provider.issuer}/elsewhere"}, b"")
    with pytest.raises(Unavailable):
        token_verifier(provider).verify(provider.token())
    assert "/elsewhere" not in provider.asked


def test_unknown_key_types_are_skipped(provider: IdentityProvider) -> None:
    provider.publish({"kty": "AKP", "kid": "post-quantum"}, {"kty": "EC", "crv": "P-999", "x": "AA", "y": "AA"}, None)
    assert token_verifier(provider).verify(provider.token()).caller.sub == "user-1"
