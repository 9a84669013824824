"""Access rules: roles, tenant ids, anonymous callers, the authorizer's response."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.authentication import caller_from_authorizer
from api.handler import Handler, method
from endpoints import jsonrpc
from infra.deploy.generate import _entry
from shared.access import rate_limits
from shared.memory import keys
from shared.platform.config import ConfigurationError, config
from shared.platform.runtime import runtime
from shared.rpc import catalogue as catalogues
from shared.rpc.caller import ANONYMOUS, LOCAL, ROLES, TENANT_ID, Caller
from shared.rpc.errors import NotAllowed, NotSignedIn
from shared.rpc.method import Params

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shared.rpc.caller import Role

TENANTS = st.from_regex(TENANT_ID, fullmatch=True)
HELD = st.frozensets(st.sampled_from(ROLES))


@pytest.fixture
def _required(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Require credentials."""
    monkeypatch.setenv("KHO_AUTH", "required")
    unlimited = SimpleNamespace(require_capacity=lambda *_: None)  # the limits need a store
    monkeypatch.setattr(rate_limits, "rate_limits", lambda: unlimited)
    config.cache_clear()
    yield
    config.cache_clear()


@given(HELD, st.sampled_from(ROLES))
def test_roles_include_lower_roles(held: frozenset[Role], needed: Role) -> None:
    caller = Caller("someone", held, "tenant")
    allowed = {role for each in held for role in ROLES[: ROLES.index(each) + 1]}
    if needed in allowed:
        caller.require(needed)
    else:
        with pytest.raises(NotAllowed) as refused:
            caller.require(needed)
        assert refused.value.details == {"needed": needed, "held": sorted(held)}


@given(HELD, TENANTS, st.text(max_size=20))
def test_caller_round_trip(held: frozenset[Role], tenant: str, sub: str) -> None:
    caller = Caller(sub, held, tenant)
    assert Caller.from_record(json.loads(json.dumps(caller.record()))) == caller


@given(TENANTS, TENANTS, st.text(min_size=1), st.text(min_size=1))
def test_tenant_keys_are_prefix_free(one: str, other: str, first: str, second: str) -> None:
    if one != other:
        assert keys.conversation(one, first) != keys.conversation(other, second)
        assert keys.messages(one, first) != keys.messages(other, second)
        assert not keys.conversation(one, first).startswith(f"{other}#")


@given(st.text())
def test_tenant_name_syntax(text: str) -> None:
    if re.fullmatch(TENANT_ID, text):
        assert text.isascii()
        assert len(text) <= 128
        assert not set(text) & set("# \n/\\\"'")


def test_anonymous_caller_has_no_tenant() -> None:
    assert not re.fullmatch(TENANT_ID, ANONYMOUS.tenant_id)
    with pytest.raises(NotSignedIn):
        Caller.from_record(json.loads(json.dumps(ANONYMOUS.record()))).require("reader")


@pytest.mark.usefixtures("_required")
@pytest.mark.parametrize(
    ("context", "message"),
    [
        (None, "Not signed in"),
        ({}, "Not signed in"),
        ({"refused": "This key is revoked."}, "This key is revoked."),
        ({"sub": "s", "roles": "admin", "tenant_id": "t", "refused": ""}, "Not signed in"),
        (
            {"sub": "s", "roles": "admin", "tenant_id": "t", "expires_at": str(time.time())},
            "This key or token is expired.",
        ),
    ],
)
def test_authorizer_denial_is_an_error(context: dict[str, Any] | None, message: str) -> None:
    with pytest.raises(NotSignedIn) as refused:
        caller_from_authorizer(context)
    assert refused.value.message == message


@pytest.mark.usefixtures("_required")
def test_authorizer_context_round_trip() -> None:
    context = {"sub": "s", "roles": "reader,writer", "tenant_id": "t", "expires_at": str(time.time() + 3600)}
    assert caller_from_authorizer(context) == Caller("s", frozenset({"reader", "writer"}), "t")
    assert caller_from_authorizer({"sub": "s", "roles": "", "tenant_id": "t"}) == Caller("s", frozenset(), "t")


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        ({"KHO_OIDC_ISSUER": "http://login.example", "KHO_OIDC_AUDIENCE": "kho"}, "KHO_OIDC_ISSUER"),
        ({"KHO_OIDC_ISSUER": "https://", "KHO_OIDC_AUDIENCE": "kho"}, "KHO_OIDC_ISSUER"),
        ({"KHO_OIDC_ISSUER": "http://127.0.0.1.evil.example", "KHO_OIDC_AUDIENCE": "kho"}, "KHO_OIDC_ISSUER"),
        ({"KHO_OIDC_ISSUER": "http://[", "KHO_OIDC_AUDIENCE": "kho"}, "KHO_OIDC_ISSUER"),
        ({"KHO_OIDC_ISSUER": "https://login.example"}, "KHO_OIDC_AUDIENCE"),
        ({"KHO_OIDC_JWKS_URL": "http://login.example/keys"}, "KHO_OIDC_JWKS_URL"),
    ],
)
def test_unsafe_settings_are_reported(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], named: str) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    config.cache_clear()
    with pytest.raises(ConfigurationError, match=named):
        config()


class Nothing(Params):
    """No parameters."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A result that names the caller."""

    sub: str


@method("recall-kit/open_to_all", role="reader", anonymous=True)
def open_to_all(_params: Nothing, caller: Caller) -> Seen:
    """Serve any caller."""
    return Seen(caller.sub)


def over_http(path: str, body: str, **headers: str) -> dict[str, Any]:
    """Return the gateway's event."""
    return {
        "rawPath": path,
        "requestContext": {},
        "headers": {"content-type": "application/json", **headers},
        "body": body,
    }


@pytest.mark.usefixtures("_required")
def test_anonymous_method_is_public_at_its_route() -> None:
    answer = open_to_all(over_http("/recall-kit/open_to_all", "{}"), None)
    assert (answer["statusCode"], json.loads(answer["body"])) == (200, {"sub": "anonymous"})
    refused = open_to_all(over_http("/recall-kit/open_to_all", "{}", authorization="Basic a2hv"), None)
    assert refused["statusCode"] == 401


@pytest.mark.usefixtures("_required")
def test_jsonrpc_endpoint_limits_anonymous_callers_to_anonymous_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of one public and several protected calls: each protected call is rejected on its own."""
    entry = catalogues.MethodEntry(**_entry("recall_kit-open_to_all", open_to_all.method))
    known = catalogues.catalogue()
    catalogue = catalogues.MethodCatalogue(known.servers, {**known.methods, entry.name: entry})
    monkeypatch.setattr(jsonrpc, "catalogue", lambda: catalogue)
    invoked: list[str] = []

    def recorded(function: str, payload: bytes) -> bytes:
        invoked.append(function)
        return as_function(function, payload)

    monkeypatch.setattr(runtime, "functions", recorded)
    open_call = {"jsonrpc": "2.0", "method": entry.name, "id": 1}
    closed_call = {"jsonrpc": "2.0", "method": "memory-server/resources/list", "id": 2}

    def ask(body: Any) -> tuple[int, Any]:
        answer = jsonrpc.handler(over_http("/jsonrpc", json.dumps(body)), None)
        return answer["statusCode"], json.loads(answer["body"])

    assert ask(open_call) == (200, {"jsonrpc": "2.0", "result": {"sub": "anonymous"}, "id": 1})
    assert ask(closed_call)[0] == ask([closed_call])[0] == ask({})[0] == 401
    status, (first, second) = ask([open_call, closed_call])
    assert (status, first["result"], second["error"]["code"]) == (200, {"sub": "anonymous"}, 401)
    assert set(invoked) == {entry.function}  # a rejected call costs no invocation


def as_function(function: str, payload: bytes) -> bytes:
    """Run the method as its function does."""
    from memory_server.resources_list import handler as resources_list

    handlers: dict[str, Handler[Any, Any]] = {
        "recall_kit-open_to_all": open_to_all,
        "memory_server-resources_list": resources_list,
    }
    return json.dumps(handlers[function](json.loads(payload), None)).encode()


def test_open_mode_makes_every_caller_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KHO_AUTH", "open")
    config.cache_clear()
    assert caller_from_authorizer(None) == caller_from_authorizer({"refused": "x"}) == LOCAL
    config.cache_clear()
