"""No token counts that the identity provider did not sign as it should."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.identity_provider import SIGNING, IdentityProvider, encoded, rsa_key, unsigned
from tests.integration.tokens.trusting import refusal, trusting


def test_forged_tokens_are_refused(provider: IdentityProvider) -> None:
    tokens, claims, good = trusting(provider), provider.claims(), provider.token()
    header, payload, signature = good.split(".")
    admin = encoded(json.dumps(claims | {"roles": ["admin"]}).encode())
    public = provider.keys["rsa"]
    own = rsa_key("rsa")
    assert isinstance(public, RSAKey)
    shared_secrets = [public.as_pem(private=False), json.dumps(public.as_dict(private=False)).encode(), b"", b"secret"]
    forged = [
        unsigned({"alg": "none", "kid": "rsa"}, claims),
        unsigned({"alg": "none"}, claims),
        unsigned({"alg": "None", "kid": "rsa"}, claims),
        unsigned({"alg": "RS256", "kid": "rsa"}, claims),
        unsigned({"alg": "ES256", "kid": "ec"}, claims, b"\0" * 64),
        unsigned({"alg": ["RS256"], "kid": "rsa"}, claims),
        unsigned({"kid": "rsa"}, claims, b"x"),
        f"{header}.{admin}.{signature}",
        f"{header}.{payload}.",
        f"{header}.{payload}",
        f"{header}.{payload}.{signature}.{signature}",
        jwt.encode({"alg": "RS256", "kid": "rsa"}, claims, own, registry=SIGNING),
        jwt.encode({"alg": "RS256", "kid": "rsa", "jwk": own.as_dict(private=False)}, claims, own, registry=SIGNING),
        jwt.encode({"alg": "RS256", "kid": "no-such-key"}, claims, public, registry=SIGNING),
        jwt.encode({"alg": "RS256"}, claims, public, registry=SIGNING),
        jwt.encode({"alg": "RS256", "kid": "ec"}, claims, public, registry=SIGNING),
        provider.sign(claims, typ="logout+jwt"),
        *(unsigned({"alg": "HS256", "kid": "rsa"}, claims, secret=secret) for secret in shared_secrets),
    ]
    assert tokens.verify(good).caller.sub == "user-1"
    for number, text in enumerate(forged):
        assert refusal(tokens, text), number


def test_headers_that_must_be_understood_are_not_overlooked(provider: IdentityProvider) -> None:
    tokens = trusting(provider)
    assert tokens.verify(provider.sign(provider.claims(), x5t="abc", nonce="n")).caller.sub == "user-1"
    must = {"alg": "RS256", "kid": "rsa", "crit": ["exp"], "exp": 1}
    assert refusal(tokens, unsigned(must, provider.claims(), b"x"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8), lambda inner: st.lists(inner, max_size=3)
)
HEADERS = st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "jwk", "b64", "x"]), JSON, max_size=5)


@given(
    st.one_of(
        st.text(),
        st.builds(unsigned, HEADERS, st.dictionaries(st.text(max_size=4), JSON), st.binary(max_size=80)),
        st.builds(
            unsigned,
            HEADERS.map(lambda header: header | {"alg": "RS256", "kid": "rsa"}),
            st.dictionaries(st.text(max_size=4), JSON),
            st.binary(max_size=300),
        ),
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_no_text_opens_by_chance_nor_crashes(provider: IdentityProvider, text: str) -> None:
    assert refusal(trusting(provider), text)


def test_a_key_for_encryption_signs_nothing(provider: IdentityProvider) -> None:
    provider.keys = {"enc": RSAKey.generate_key(2048, {"kid": "enc", "use": "enc"})}
    provider.publish()
    token = jwt.encode({"alg": "RS256", "kid": "enc"}, provider.claims(), rsa_key("enc"), registry=SIGNING)
    assert refusal(trusting(provider), token)
