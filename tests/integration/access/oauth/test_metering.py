"""Metering of OAuth's endpoints: strangers count after a lookup, and exhaust nothing that valid credentials need."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from oauth import metering as oauth_metering
from shared.access.oauth.grants import Grants
from shared.access.rate_limits import RateLimits
from shared.aws.dynamodb import Table
from shared.platform.config import config
from shared.rpc.errors import NotSignedIn
from tests.helpers.clock import Clock
from tests.helpers.oauth_client import CALLBACK, Answer, OAuthTestClient, hidden_fields
from tests.integration.access.oauth.functions import forget_settings, send

if TYPE_CHECKING:
    from collections.abc import Callable

ADDRESSES = [f"127.0.{number // 24}.{number % 24 + 2}" for number in range(240)]
CODE = "khoc_dA.0123456789abcdef." + "x" * 43
TOKEN = "khor_dA.0123456789abcdef." + "x" * 43


@pytest.fixture
def settle(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that changes settings by their environment variables. Nothing flows into buckets any more."""
    clock = Clock()

    def change(**settings: int) -> None:
        for name, value in settings.items():
            monkeypatch.setenv(f"KHO_{name}", str(value))
        forget_settings()
        limits = RateLimits(Table(config().limits_table), config(), clock)
        monkeypatch.setattr(oauth_metering, "rate_limits", lambda: limits)

    return change


def bad_requests(stranger: OAuthTestClient) -> dict[str, Callable[[], Answer]]:
    """Return the requests with nothing valid in them that count in one total."""
    form = {"grant_type": "refresh_token", "refresh_token": TOKEN, "client_id": "unknown"}
    return {
        "refresh": lambda: stranger.refresh(TOKEN),
        "code": lambda: stranger.redeem(CODE),
        "nonsense": lambda: stranger.refresh("nonsense"),
        "client": lambda: stranger.token(form),
        "revocation": lambda: stranger.revoke(TOKEN),
        "decision": lambda: stranger.post("/oauth/authorize", {"request": "guessed", "decision": "allow"}),
        "metadata": lambda: stranger.token(form | {"client_id": "https://127.0.0.1/client.json"}),
    }


def flood(client_id: str) -> set[int]:
    """Send a bad request of each kind in turn from each of 240 addresses. Return the statuses of another stranger."""
    for number, address in enumerate(ADDRESSES):
        stranger = OAuthTestClient(partial(send, source=address), client_id=client_id)
        kinds = list(bad_requests(stranger).values())
        kinds[number % len(kinds)]()
        stranger.open_page()
    other = OAuthTestClient(partial(send, source="127.0.99.1"), client_id=client_id)
    return {request().status for request in bad_requests(other).values()} | {other.open_page().status}


def test_flood_of_strangers_stops_no_valid_request(
    client: OAuthTestClient, key: str, settle: Callable[..., None]
) -> None:
    """240 addresses use up the totals of bad requests and of pages. Codes, tokens and open pages still work."""
    open_page, denied_page, wrong_page = client.open_page(), client.open_page(), client.open_page()
    code, tokens, ending = client.code(key), client.tokens(key), client.tokens(key)
    settle(SIGN_INS_A_MINUTE=100)
    assert flood(client.client_id) == {429}
    assert client.redeem(code).status == 200
    for _ in range(5):
        refreshed = client.refresh(tokens["refresh_token"])
        assert refreshed.status == 200, refreshed.body
        tokens = refreshed.json
    assert client.decide(open_page, key=key).status == 303
    assert client.decide(denied_page, decision="deny").status == 303
    assert client.revoke(ending["refresh_token"]).status == 200
    assert client.refresh(ending["refresh_token"]).json["error"] == "invalid_grant"
    # A page with a wrong key is a stranger's again.
    assert client.decide(wrong_page, key="kho_wrong").status == 429


def test_pages_have_a_total_of_their_own(client: OAuthTestClient, settle: Callable[..., None]) -> None:
    settle(SIGN_INS_A_MINUTE=3)
    pages = [client.open_page().status for _ in range(5)]
    assert pages == [200, 200, 200, 429, 429]
    bad = [client.refresh(TOKEN).status for _ in range(5)]
    assert bad == [400, 400, 400, 429, 429]


@pytest.mark.parametrize("kind", bad_requests(OAuthTestClient(send)))
def test_bad_requests_are_metered_by_address(client: OAuthTestClient, settle: Callable[..., None], kind: str) -> None:
    settle(ADDRESS_SIGN_IN_BURST=2)
    request = bad_requests(client)[kind]
    assert [request().status == 429 for _ in range(3)] == [False, False, True]
    refused = request()
    assert refused.status == 429
    assert kind == "decision" or refused.json["error"] == "temporarily_unavailable"
    assert int(refused.headers["retry-after"]) >= 1


def test_valid_token_cannot_flood(client: OAuthTestClient, key: str, settle: Callable[..., None]) -> None:
    """A grant has as many token requests as an address. Others go on, and a revocation is never refused."""
    settle(ADDRESS_SIGN_IN_BURST=4)
    greedy, other = client.tokens(key), client.tokens(key)
    statuses = []
    for _ in range(5):
        answer = client.refresh(greedy["refresh_token"])
        statuses.append(answer.status)
        greedy = answer.json if answer.status == 200 else greedy
    assert statuses == [200, 200, 200, 429, 429]
    assert client.refresh(other["refresh_token"]).status == 200
    assert client.revoke(greedy["refresh_token"]).status == 200
    form = {"grant_type": "authorization_code", "code": client.code(key), "redirect_uri": CALLBACK}
    wrong = [client.token(form | {"code_verifier": "w" * 43}).status for _ in range(6)]
    assert wrong == [400, 400, 400, 400, 429, 429]


def test_replay_is_recognised_whatever_was_metered(
    client: OAuthTestClient, key: str, settle: Callable[..., None]
) -> None:
    """A thief who keeps the buckets empty hides nothing: the owner's use of the stolen code ends the grant."""
    settle(ADDRESS_SIGN_IN_BURST=2, SIGN_INS_A_MINUTE=1)
    code = client.code(key)
    stolen = client.redeem(code).json
    stolen = client.refresh(stolen["refresh_token"]).json
    assert client.refresh(stolen["refresh_token"]).status == 429
    client.refresh(TOKEN)
    assert client.refresh(TOKEN).status == 429
    assert client.redeem(code).json["error"] == "invalid_grant"
    with pytest.raises(NotSignedIn):
        Grants(Table(config().access_table)).verify(stolen["access_token"])


def test_leaving_for_the_provider_counts_as_a_page(
    client: OAuthTestClient, settle: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody can open a page: without a bound, one page could store visits without end."""
    monkeypatch.setenv("KHO_OIDC_ISSUER", "http://127.0.0.1:1")
    monkeypatch.setenv("KHO_OIDC_AUDIENCE", "kho-api")
    monkeypatch.setenv("KHO_OIDC_CLIENT_ID", "kho-web")
    settle(ADDRESS_SIGN_IN_BURST=3)
    assert config().oidc_client_id
    handle = hidden_fields(client.open_page())["request"]
    visits = [send("GET", "/oauth/sign-in", query=f"request={handle}").status for _ in range(3)]
    assert visits == [503, 503, 429]  # the provider is away
    unknown = [send("GET", "/oauth/callback", query="code=x&state=guessed").status for _ in range(4)]
    assert unknown == [400, 400, 400, 429]
