"""Sign-in with the identity provider: its people decide on requests as those with a key do."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from oauth.page import REQUEST_OVER
from shared.access.api_keys import ApiKeys
from shared.aws.dynamodb import Table
from shared.platform.config import config
from tests.helpers.dynamodb_requests import intercept_requests
from tests.helpers.identity_provider import IdentityProvider, identity_provider
from tests.helpers.oauth_client import Answer, OAuthTestClient, hidden_fields
from tests.integration.access.oauth.functions import send

if TYPE_CHECKING:
    from collections.abc import Iterator

KHO = "kho-web"


@pytest.fixture(scope="module")
def running_provider() -> Iterator[IdentityProvider]:
    with identity_provider() as running:
        yield running


@pytest.fixture
def provider(running_provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch) -> IdentityProvider:
    running_provider.client_credentials = ""
    monkeypatch.setenv("KHO_OIDC_ISSUER", running_provider.issuer)
    monkeypatch.setenv("KHO_OIDC_AUDIENCE", "kho-api")
    monkeypatch.setenv("KHO_OIDC_CLIENT_ID", KHO)
    config.cache_clear()
    return running_provider


def visit(page: Answer) -> str:
    """Follow the page's link to the provider. Return the address there."""
    answer = send("GET", "/oauth/sign-in", query=f"request={hidden_fields(page)['request']}")
    assert answer.status == 303, answer.body
    return answer.headers["location"]


def come_back(query: str) -> Answer:
    """Return from the provider."""
    return send("GET", "/oauth/callback", query=query)


def test_person_of_the_provider_grants_access(provider: IdentityProvider, client: OAuthTestClient, tenant: str) -> None:
    page = client.open_page(scope="reader writer operator")
    assert f"http://127.0.0.1:{provider.server_address[1]}" not in page.body
    consent = come_back(provider.sign_in(visit(page), tenant_id=tenant, roles=["writer"], sub="lan"))
    assert consent.status == 200
    assert "lan" in consent.body
    assert tenant in consent.body
    assert 'type="password"' not in consent.body
    tokens = client.redeem(client.decide(consent).redirect["code"]).json
    assert tokens["scope"] == "writer"
    call = send(
        "POST",
        "/mcp",
        body='{"jsonrpc": "2.0", "id": 1, "method": "ping"}',
        authorization=f"Bearer {tokens['access_token']}",
        **{"content-type": "application/json", "accept": "application/json, text/event-stream"},
    )
    assert call.status == 200
    assert client.refresh(tokens["refresh_token"]).status == 200


def test_provider_gets_the_clients_secret(
    provider: IdentityProvider, client: OAuthTestClient, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.client_credentials = "Basic " + base64.b64encode(b"kho-web:s%2Fecret").decode()
    page = client.open_page()
    assert come_back(provider.sign_in(visit(page), tenant_id=tenant)).status == 503
    monkeypatch.setenv("KHO_OIDC_CLIENT_SECRET", "s/ecret")
    assert come_back(provider.sign_in(visit(page), tenant_id=tenant)).status == 200


def test_signing_in_grants_nothing_without_a_decision(
    provider: IdentityProvider, client: OAuthTestClient, tenant: str
) -> None:
    """An attacker who has begun the request cannot finish it: only the owner's page has the new handle."""
    attackers_page = client.open_page()
    consent = come_back(provider.sign_in(visit(attackers_page), tenant_id=tenant))
    assert "location" not in consent.headers
    assert client.decide(attackers_page).status == 400
    assert client.decide(attackers_page, key="kho_wrong").status == 400
    assert client.decide(consent).status == 303
    assert client.decide(consent).status == 400


def test_each_visit_works_once(provider: IdentityProvider, client: OAuthTestClient, tenant: str) -> None:
    """A visit that failed is over too: otherwise anybody could make Kho call the provider without end."""
    query = provider.sign_in(visit(client.open_page()), tenant_id=tenant)
    assert come_back(query).status == 200
    assert come_back(query).status == 400
    failing = provider.sign_in(visit(client.open_page()), tenant_id=tenant).replace("code=", "code=x")
    assert come_back(failing).status == 503
    again = come_back(failing)
    assert (again.status, REQUEST_OVER in again.body) == (400, True)


def test_visit_that_ends_twice_at_once_calls_the_provider_once(
    provider: IdentityProvider, client: OAuthTestClient, tenant: str
) -> None:
    """Another request with the same address ends the visit just before this one does."""
    query = provider.sign_in(visit(client.open_page()), tenant_id=tenant)
    others: list[Answer] = []

    def overtake(operation: str, _params: object) -> None:
        if operation == "DeleteItem" and not others:
            others.append(Answer(0, {}, ""))
            others[0] = come_back(query)

    with intercept_requests(overtake):
        late = come_back(query)
    assert (others[0].status, late.status, REQUEST_OVER in late.body) == (200, 400, True)


def test_answer_of_another_visit_is_refused(provider: IdentityProvider, client: OAuthTestClient, tenant: str) -> None:
    """A code that an attacker injects fails at the provider by its verifier, and at Kho by its nonce."""
    mine, other = visit(client.open_page()), visit(client.open_page())
    state = dict(each.split("=") for each in provider.sign_in(mine, tenant_id=tenant).split("&"))["state"]
    stolen = dict(each.split("=") for each in provider.sign_in(other, tenant_id=tenant).split("&"))["code"]
    assert come_back(f"code={stolen}&state={state}").status == 503
    third = visit(client.open_page())
    refused = come_back(provider.sign_in(third, tenant_id=tenant, nonce="another"))
    assert (refused.status, REQUEST_OVER in refused.body) == (400, False)


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "kho-api"},
        {"aud": "other"},
        {"iss": "https://evil.example"},
        {"exp": 1},
        {"roles": []},
        {"tenant_id": None},
    ],
)
def test_invalid_id_tokens_are_refused(
    provider: IdentityProvider, client: OAuthTestClient, tenant: str, claims: dict[str, object]
) -> None:
    answer = come_back(provider.sign_in(visit(client.open_page()), **{"tenant_id": tenant} | claims))
    assert answer.status == 400
    assert "<form" not in answer.body


@pytest.mark.parametrize("change", ["&iss=https%3A%2F%2Fevil.example", "&error=access_denied", "state"])
def test_wrong_answers_of_the_provider_are_refused(
    provider: IdentityProvider, client: OAuthTestClient, change: str
) -> None:
    query = provider.sign_in(visit(client.open_page())).partition("&iss")[0]
    if change == "state":
        query = query.replace("state=", "state=x")
    elif "error" in change:
        query = query.partition("&")[2] + change
    else:
        query += change
    assert come_back(query).status == 400


def test_key_signs_in_where_a_provider_is_configured(
    provider: IdentityProvider, client: OAuthTestClient, tenant: str
) -> None:
    _, text = ApiKeys(Table(config().access_table)).create(tenant, "reader")
    assert client.tokens(text)["scope"] == "reader"


def test_without_a_client_id_nothing_leads_to_the_provider(client: OAuthTestClient) -> None:
    page = client.open_page()
    assert "/oauth/sign-in" not in page.body
    assert send("GET", "/oauth/sign-in", query=f"request={hidden_fields(page)['request']}").status == 400
