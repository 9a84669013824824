"""The caller for whom an action runs: that of the credentials, or with open access the principal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from endpoints import actions
from shared.access import credentials
from shared.access.models import Identity
from shared.platform.config import config
from shared.platform.runtime import runtime
from shared.rpc.caller import Caller
from tests.helpers.mcp_events import event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

IDENTITY = Identity(Caller("key-1", frozenset({"writer"}), "tenant"), None)


class Verifier:
    """A verifier of credentials that accepts all of them."""

    def verify(self, _authorization: str) -> Identity:
        return IDENTITY


@pytest.fixture
def callers(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Answer calls of functions, and record for whom they run."""
    recorded: list[dict[str, Any]] = []

    def record(_function: str, payload: bytes) -> bytes:
        recorded.append(json.loads(payload)["caller"])
        return b'{"result": {}}'

    monkeypatch.setattr(runtime, "functions", record)
    return recorded


@pytest.fixture
def access(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Return a function that sets whether credentials are required."""

    def set_access(auth: str) -> None:
        monkeypatch.setenv("KHO_AUTH", auth)
        monkeypatch.setattr(credentials, "cached_verifier", Verifier)
        config.cache_clear()

    yield set_access
    monkeypatch.undo()
    config.cache_clear()


def act(principal: dict[str, Any]) -> int:
    body = {"action": "list_children", "principal": principal, "payload": {}}
    status: int = actions.handler(event(body, path="/actions", authorization="Bearer x"), None)["statusCode"]
    return status


@pytest.mark.parametrize(
    ("principal", "sub", "tenant_id"),
    [({}, "local", "local"), ({"sub": "lan", "tenant_id": "acme"}, "lan", "acme")],
)
def test_with_open_access_the_principal_acts(
    principal: dict[str, Any], sub: str, tenant_id: str, callers: list[dict[str, Any]], access: Callable[[str], None]
) -> None:
    access("open")
    assert act(principal) == 200
    assert [(each["sub"], each["tenant_id"]) for each in callers] == [(sub, tenant_id)]


@pytest.mark.parametrize("principal", [{}, {"sub": "key-1"}, {"tenant_id": "tenant"}, {"roles": ["admin"]}])
def test_principal_that_contradicts_nothing_adds_no_right(
    principal: dict[str, Any], callers: list[dict[str, Any]], access: Callable[[str], None]
) -> None:
    access("required")
    assert act(principal) == 200
    assert [(each["sub"], each["tenant_id"], list(each["roles"])) for each in callers] == [
        ("key-1", "tenant", ["writer"])
    ]


@pytest.mark.parametrize(
    "principal", [{"sub": "other"}, {"tenant_id": "other"}, {"sub": "key-1", "tenant_id": "other"}]
)
def test_principal_that_contradicts_the_credentials_is_refused(
    principal: dict[str, Any], callers: list[dict[str, Any]], access: Callable[[str], None]
) -> None:
    access("required")
    assert act(principal) == 403
    assert not callers
