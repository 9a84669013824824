"""Tokens of an identity provider, verified with keys that it really publishes, on loopback."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import RSAKey

from shared.access.tokens import Tokens
from shared.config import config
from shared.rpc.caller import Caller
from shared.rpc.errors import NotSignedIn, Unavailable
from tests.identity_provider import (
    AUDIENCE,
    SIGNING,
    IdentityProvider,
    ec_key,
    encoded,
    identity_provider,
    rsa_key,
    unsigned,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclasses.dataclass(slots=True)
class ShiftedClock:
    """The real clock, put forward."""

    ahead: float = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


@pytest.fixture(scope="module")
def shared_provider() -> Iterator[IdentityProvider]:
    with identity_provider() as provider:
        yield provider


@pytest.fixture
def provider(shared_provider: IdentityProvider) -> Iterator[IdentityProvider]:
    """The provider, with the keys that it began with."""
    keys = dict(shared_provider.keys)
    shared_provider.asked.clear()
    yield shared_provider
    shared_provider.keys, shared_provider.down = keys, False
    shared_provider.publish()


@pytest.fixture
def clock() -> ShiftedClock:
    return ShiftedClock()


def trusting(provider: IdentityProvider, clock: Callable[[], float] = time.time, **changes: str) -> Tokens:
    trusted: dict[str, Any] = {"oidc_issuer": provider.issuer, "oidc_audience": AUDIENCE, **changes}
    return Tokens(dataclasses.replace(config(), **trusted), clock)


def refusal(tokens: Tokens, text: str) -> str:
    with pytest.raises(NotSignedIn) as refused:
        tokens.verify(text)
    return refused.value.message


@pytest.mark.parametrize(("kid", "alg"), [("rsa", "RS256"), ("rsa", "PS256"), ("ec", "ES256")])
def test_a_token_says_who_calls(provider: IdentityProvider, kid: str, alg: str) -> None:
    claims = provider.claims()
    identity = trusting(provider).verify(provider.sign(claims, kid=kid, alg=alg))
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
def test_only_our_roles_count(provider: IdentityProvider, changes: dict[str, Any], held: set[str]) -> None:
    assert trusting(provider).verify(provider.token(**changes)).caller.roles == held


def test_claims_are_found_where_the_settings_say(provider: IdentityProvider) -> None:
    tokens = trusting(provider, oidc_tenant_claim="https://kho.example/tenant", oidc_roles_claim="realm_access.roles")
    named = {"https://kho.example/tenant": "t-2", "realm_access": {"roles": ["admin"]}}
    assert tokens.verify(provider.token(**named)).caller == Caller("user-1", frozenset({"admin"}), "t-2")
    assert refusal(tokens, provider.token()) == (
        "This token names no tenant: its claim 'https://kho.example/tenant' must."
    )


def test_one_audience_of_several_is_enough(provider: IdentityProvider) -> None:
    assert trusting(provider).verify(provider.token(aud=["other", AUDIENCE])).caller.sub == "user-1"


def test_clocks_may_differ_by_a_minute(provider: IdentityProvider) -> None:
    tokens, now = trusting(provider), int(time.time())
    assert tokens.verify(provider.token(exp=now - 50)).caller.sub == "user-1"
    assert tokens.verify(provider.token(nbf=now + 50, iat=now + 50)).caller.sub == "user-1"
    assert refusal(tokens, provider.token(exp=now - 61)) == "This token is expired."


WRONG_CLAIMS: dict[str, dict[str, Any]] = {
    "another issuer": {"iss": "https://evil.example"},
    "no issuer": {"iss": None},
    "another audience": {"aud": "other"},
    "a part of the audience": {"aud": AUDIENCE[:-1]},
    "no audience": {"aud": None},
    "no audience in the list": {"aud": []},
    "an audience that is no string": {"aud": {AUDIENCE: 1}},
    "no expiry": {"exp": None},
    "an expiry in words": {"exp": "tomorrow"},
    "an expiry that is true": {"exp": True},
    "not yet valid": {"nbf": int(time.time()) + 3600},
    "issued in the future": {"iat": int(time.time()) + 3600},
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
def test_wrong_claims_are_refused(provider: IdentityProvider, wrong: str) -> None:
    tokens = trusting(provider)
    assert tokens.verify(provider.token()).caller.sub == "user-1"
    assert refusal(tokens, provider.token(**WRONG_CLAIMS[wrong]))


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
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_text_opens_by_chance_nor_crashes(provider: IdentityProvider, text: str) -> None:
    assert refusal(trusting(provider), text)


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
    old = provider.token(exp=int(time.time()) + 3600)
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
    token = provider.token(exp=int(time.time()) + 10_000)
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
def test_metadata_of_others_lead_to_no_keys(provider: IdentityProvider, metadata: Any) -> None:
    token = provider.token()
    # The same server, under a name that nobody vouches for.
    roundabout = provider.issuer.replace("127.0.0.1", "127.1")
    text = json.dumps(metadata).replace("{issuer}", provider.issuer).replace("{roundabout}", roundabout)
    provider.serve("/.well-known/openid-configuration", json.loads(text))
    with pytest.raises(Unavailable):
        trusting(provider).verify(token)
    assert "/keys" not in provider.asked


@pytest.mark.parametrize(
    "page", [[], {}, {"keys": []}, {"keys": "none"}, {"keys": [5, "key", {"kty": "RSA"}, {"kty": "new"}]}]
)
def test_pages_without_a_usable_key_are_said_to_be_no_answer(provider: IdentityProvider, page: Any) -> None:
    provider.serve("/keys", page)
    with pytest.raises(Unavailable):
        trusting(provider).verify(provider.token())


def test_pages_without_end_are_not_read(provider: IdentityProvider) -> None:
    keys = json.loads(provider.pages["/keys"][2])
    provider.serve("/keys", keys | {"padding": "x" * 200_000})
    assert trusting(provider).verify(provider.token()).caller.sub == "user-1"
    provider.serve("/keys", keys | {"padding": "x" * 300_000})
    with pytest.raises(Unavailable):
        trusting(provider).verify(provider.token())


def test_redirections_are_not_followed(provider: IdentityProvider) -> None:
    provider.pages["/elsewhere"] = provider.pages["/keys"]
    provider.pages["/keys"] = (302, {"location": f"{provider.issuer}/elsewhere"}, b"")
    with pytest.raises(Unavailable):
        trusting(provider).verify(provider.token())
    assert "/elsewhere" not in provider.asked


def test_keys_of_unknown_kinds_do_not_hide_the_others(provider: IdentityProvider) -> None:
    provider.publish({"kty": "AKP", "kid": "post-quantum"}, {"kty": "EC", "crv": "P-999", "x": "AA", "y": "AA"}, None)
    assert trusting(provider).verify(provider.token()).caller.sub == "user-1"


def test_a_key_for_encryption_signs_nothing(provider: IdentityProvider) -> None:
    provider.keys = {"enc": RSAKey.generate_key(2048, {"kid": "enc", "use": "enc"})}
    provider.publish()
    token = jwt.encode({"alg": "RS256", "kid": "enc"}, provider.claims(), rsa_key("enc"), registry=SIGNING)
    assert refusal(trusting(provider), token)
