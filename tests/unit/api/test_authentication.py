"""Authentication by the gateway's authorizer, and the address that a token is for."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from api.authentication import anonymous_source, caller_from_authorizer, require_authenticated, require_resource
from api.http_events import HttpRequest
from shared.access.models import Identity
from shared.platform.config import config
from shared.rpc.caller import ANONYMOUS, LOCAL, Caller
from shared.rpc.errors import NotSignedIn
from tests.helpers.mcp_events import event

if TYPE_CHECKING:
    from collections.abc import Iterator

CALLER = Caller("sub", frozenset({"reader"}), "tenant")


@pytest.fixture(autouse=True)
def _required(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("KHO_AUTH", "required")
    monkeypatch.setenv("KHO_PUBLIC_URL", "https://kho.example")
    config.cache_clear()
    yield
    config.cache_clear()


@pytest.mark.parametrize("resource", ["", "https://kho.example", "https://kho.example/mcp/documents"])
def test_token_works_at_its_own_address(resource: str) -> None:
    require_resource(Identity(CALLER, None, resource), "/mcp/documents")


@pytest.mark.parametrize(
    "resource",
    [
        "https://kho.example/mcp",
        "https://kho.example/mcp/documents/",
        "https://kho.example/mcp/memory",
        "https://other.example",
        "/mcp/documents",
    ],
)
def test_token_works_at_no_other_address(resource: str) -> None:
    with pytest.raises(NotSignedIn) as refused:
        require_resource(Identity(CALLER, None, resource), "/mcp/documents")
    assert resource in str(refused.value.guidance)


def test_source_is_the_gateways_word() -> None:
    assert anonymous_source(HttpRequest.from_event(event({}))) == "127.0.0.1"


def test_authorizers_word_ends_with_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway caches it longer."""
    context = {"sub": "sub", "roles": "reader", "tenant_id": "tenant", "expires_at": "1000.5"}
    monkeypatch.setattr(time, "time", lambda: 1000.4)
    assert caller_from_authorizer(context) == CALLER
    monkeypatch.setattr(time, "time", lambda: 1000.5)
    with pytest.raises(NotSignedIn, match="expired"):
        caller_from_authorizer(context)


def test_anonymous_caller_is_not_signed_in() -> None:
    require_authenticated(CALLER)
    require_authenticated(LOCAL)
    with pytest.raises(NotSignedIn):
        require_authenticated(ANONYMOUS)
