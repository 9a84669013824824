"""Least privilege of OAuth: each function's policy allows exactly the store actions of its code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shared.access.api_keys import ApiKeys
from shared.aws.dynamodb import Table
from shared.platform.config import config
from tests.helpers.identity_provider import identity_provider
from tests.helpers.measured_policies import measures
from tests.helpers.oauth_client import OAuthTestClient, hidden_fields
from tests.helpers.template import all_table_actions
from tests.integration.access.oauth.functions import forget_settings, reset_oauth, send

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Actions = set[tuple[str, str]]


@pytest.fixture(autouse=True)
def _oauth(store: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    reset_oauth(monkeypatch)
    yield
    forget_settings()


def authorize(client: OAuthTestClient, key: str) -> None:
    client.code(key)
    client.decide(client.open_page(), decision="deny")


def sign_in(client: OAuthTestClient, tenant: str, store_actions: Actions) -> None:
    with identity_provider() as provider, pytest.MonkeyPatch.context() as patch:
        for name, value in (("ISSUER", provider.issuer), ("AUDIENCE", "api"), ("CLIENT_ID", "kho")):
            patch.setenv(f"KHO_OIDC_{name}", value)
        config.cache_clear()
        handle = hidden_fields(client.open_page())["request"]
        store_actions.clear()
        address = send("GET", "/oauth/sign-in", query=f"request={handle}").headers["location"]
        assert send("GET", "/oauth/callback", query=provider.sign_in(address, tenant_id=tenant)).status == 200
    config.cache_clear()


def exchange(client: OAuthTestClient, code: str) -> None:
    tokens = client.redeem(code).json
    client.refresh(tokens["refresh_token"])
    client.redeem(code)


def revoke(client: OAuthTestClient, code: str, store_actions: Actions) -> None:
    tokens = client.redeem(code).json
    store_actions.clear()
    client.revoke(tokens["access_token"])
    client.revoke(tokens["access_token"].swapcase())  # a stranger's, which is metered


@measures(*(f"oauth-{name}" for name in ("authorize", "register", "revoke", "sign_in", "token")))
@pytest.mark.parametrize("name", ["authorize", "register", "revoke", "sign_in", "token"])
def test_policy_allows_exactly_the_actions_used(name: str, tenant: str, store_actions: Actions) -> None:
    _, key = ApiKeys(Table(config().access_table)).create(tenant, "writer")
    client = OAuthTestClient(send)
    client.register()
    code = client.code(key)
    run: dict[str, Callable[[], object]] = {
        "authorize": lambda: authorize(client, key),
        "register": client.register,
        "revoke": lambda: revoke(client, code, store_actions),
        "sign_in": lambda: sign_in(client, tenant, store_actions),
        "token": lambda: exchange(client, code),
    }
    store_actions.clear()
    run[name]()
    assert store_actions == all_table_actions(f"oauth-{name}")
