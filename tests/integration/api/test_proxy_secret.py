"""Behind the operator's proxy, calls that do not come through it are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from api.authentication import caller_from_headers
from api.http_events import HttpRequest
from endpoints import authorizer
from shared.access.source_address import PROXY_HEADER
from shared.platform.config import config
from shared.rpc.caller import ANONYMOUS
from shared.rpc.errors import NotSignedIn
from tests.helpers.mcp_events import event

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = "of-the-proxy"
REFUSAL = "This server answers at its public address alone."


@pytest.fixture(autouse=True)
def _behind_a_proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("KHO_AUTH", "required")
    monkeypatch.setenv("KHO_PROXY_SECRET", SECRET)
    config.cache_clear()
    yield
    config.cache_clear()


def anonymous_request(**headers: str) -> HttpRequest:
    request: dict[str, Any] = event({}, path="/recall-kit/query_experiences")
    return HttpRequest.from_event(request | {"headers": {"content-type": "application/json"} | headers})


@pytest.mark.parametrize("headers", [{}, {PROXY_HEADER: "guess"}])
def test_anonymous_call_past_the_proxy_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(NotSignedIn, match=REFUSAL):
        caller_from_headers(anonymous_request(**headers))


def test_anonymous_call_through_the_proxy_is_accepted() -> None:
    caller = caller_from_headers(anonymous_request(**{PROXY_HEADER: SECRET}))
    assert (caller.sub, caller.roles) == (ANONYMOUS.sub, ANONYMOUS.roles)


def test_authorizer_refuses_what_did_not_come_through_the_proxy() -> None:
    request = {"headers": {}, "requestContext": {"requestId": "r"}, "identitySource": ["Bearer kho_key"]}
    assert authorizer.handler(request, None)["context"] == {"refused": REFUSAL}
