"""Only tokens that the identity provider has properly signed are accepted."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.helpers.identity_provider import SIGNING, IdentityProvider, encode_part, rsa_key, unsigned_token
from tests.helpers.token_verification import token_verifier, verification_error


def test_forged_tokens_are_rejected(provider: IdentityProvider) -> None:
    tokens, claims, good = token_verifier(provider), provider.claims(), provider.token()
    header, payload, signature = good.split(".")
    admin = encode_part(json.dumps(claims | {"roles": ["admin"]}).encode())
    public = provider.keys["rsa"]
    own = rsa_key("rsa")
    assert isinstance(public, RSAKey)
    shared_secrets = [public.as_pem(private=False), json.dumps(public.as_dict(private=False)).encode(), b"", b"secret"]
    forged = [
        unsigned_token({"alg": "none", "kid": "rsa"}, claims),
        unsigned_token({"alg": "none"}, claims),
        unsigned_token({"alg": "None", "kid": "rsa"}, claims),
        unsigned_token({"alg": "RS256", "kid": "rsa"}, claims),
        unsigned_token({"alg": "ES256", "kid": "ec"}, claims, b"\0" * 64),
        unsigned_token({"alg": ["RS256"], "kid": "rsa"}, claims),
        unsigned_token({"kid": "rsa"}, claims, b"x"),
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
        *(unsigned_token({"alg": "HS256", "kid": "rsa"}, claims, secret=secret) for secret in shared_secrets),
    ]
    assert tokens.verify(good).caller.sub == "user-1"
    for number, text in enumerate(forged):
        assert verification_error(tokens, text), number


def test_crit_header_is_enforced(provider: IdentityProvider) -> None:
    tokens = token_verifier(provider)
    assert tokens.verify(provider.sign(provider.claims(), x5t="abc", nonce="n")).caller.sub == "user-1"
    must = {"alg": "RS256", "kid": "rsa", "crit": ["exp"], "exp": 1}
    assert verification_error(tokens, unsigned_token(must, provider.claims(), b"x"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8), lambda inner: st.lists(inner, max_size=3)
)
HEADERS = st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "jwk", "b64", "x"]), JSON, max_size=5)


@given(
    st.one_of(
        st.text(),
        st.builds(unsigned_token, HEADERS, st.dictionaries(st.text(max_size=4), JSON), st.binary(max_size=80)),
        st.builds(
            unsigned_token,
            HEADERS.map(lambda header: header | {"alg": "RS256", "kid": "rsa"}),
            st.dictionaries(st.text(max_size=4), JSON),
            st.binary(max_size=300),
        ),
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_random_text_is_rejected_without_crash(provider: IdentityProvider, text: str) -> None:
    assert verification_error(token_verifier(provider), text)


def test_encryption_key_does_not_verify_signatures(provider: IdentityProvider) -> None:
    provider.keys = {"enc": RSAKey.generate_key(2048, {"kid": "enc", "use": "enc"})}
    provider.publish()
    token = jwt.encode({"alg": "RS256", "kid": "enc"}, provider.claims(), rsa_key("enc"), registry=SIGNING)
    assert verification_error(token_verifier(provider), token)
