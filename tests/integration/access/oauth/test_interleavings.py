"""Another caller of OAuth acts between what a request has read and what it writes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from shared.access import keys
from shared.access.oauth.authorization_requests import AuthorizationRequests, ResourceOwner
from shared.access.oauth.clients import OAuthClients
from shared.access.oauth.errors import OAuthError
from shared.access.oauth.token_text import read_token
from shared.aws.dynamodb import ConditionFailed, Keys, Table
from shared.platform.config import config
from shared.rpc.errors import NotFound
from tests.helpers.interference import another_caller
from tests.integration.access.oauth.test_grants import Granting

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.access.api_keys import ApiKey
    from shared.access.oauth.grants import IssuedTokens
    from shared.rpc.caller import Role
    from tests.helpers.oauth_client import Answer, OAuthTestClient


@pytest.fixture
def granting(make_key: Callable[[Role], tuple[ApiKey, str]]) -> Granting:
    return Granting(make_key("writer")[0])


def refused(operation: Callable[[], object], act: Callable[[], object]) -> str:
    """Return OAuth's code for an operation, with `act` just before its transaction."""
    with another_caller(act, before="TransactWriteItems"), pytest.raises(OAuthError) as error:
        operation()
    return error.value.code


def grant_of(text: str) -> tuple[str, str]:
    reference = read_token("code", text) or read_token("access", text)
    assert reference
    return reference.tenant_id, reference.grant_id


def delete_grant(granting: Granting, text: str) -> None:
    """Delete a grant and its tokens, as the table does after their time."""
    tenant, grant_id = grant_of(text)
    granting.table.delete_all([(keys.grants(tenant), grant_id)])
    granting.table.delete_range(keys.grant_tokens(tenant, grant_id), Keys.after(" "))


def items_of(granting: Granting) -> list[Any]:
    return [item for page in granting.table.scan(f"{granting.key.tenant_id}#") for item in page]


def test_code_that_another_request_just_redeemed_gives_nothing(granting: Granting) -> None:
    """A replay within the first use is a replay: both lose."""
    code = granting.code()
    won: list[IssuedTokens] = []
    assert refused(lambda: granting.redeem(code), lambda: won.append(granting.redeem(code))) == "invalid_grant"
    assert not granting.is_valid(won[0])


def test_code_of_a_grant_that_was_just_revoked_gives_nothing(granting: Granting) -> None:
    code = granting.code()
    assert refused(lambda: granting.redeem(code), lambda: granting.grants.revoke(*grant_of(code))) == "invalid_grant"
    assert len(items_of(granting)) == 1, "no token is stored"


def test_refresh_token_that_another_request_just_used_gives_nothing(granting: Granting) -> None:
    tokens = granting.tokens()
    won: list[IssuedTokens] = []
    assert refused(lambda: granting.refresh(tokens), lambda: won.append(granting.refresh(tokens))) == "invalid_grant"
    assert granting.is_valid(won[0]), "a use at the same moment revokes nothing"
    assert granting.is_valid(granting.refresh(won[0]))


def test_refresh_token_of_a_grant_that_was_just_revoked_gives_nothing(granting: Granting) -> None:
    tokens = granting.tokens()
    revoking = lambda: granting.grants.revoke(*grant_of(tokens.access_token))  # noqa: E731
    before = len(items_of(granting))
    assert refused(lambda: granting.refresh(tokens), revoking) == "invalid_grant"
    assert len(items_of(granting)) == before, "no token is stored"


@pytest.mark.parametrize("kind", ["grant", "token"])
def test_refresh_token_that_was_just_deleted_gives_nothing(granting: Granting, kind: str) -> None:
    """An item that the table deletes after its time never comes back as a part of one."""
    tokens = granting.tokens()
    tenant, grant_id = grant_of(tokens.access_token)

    def delete() -> None:
        if kind == "grant":
            granting.table.delete_all([(keys.grants(tenant), grant_id)])
        else:
            granting.table.delete_range(keys.grant_tokens(tenant, grant_id), Keys.beginning("refresh#"))

    assert refused(lambda: granting.refresh(tokens), delete) == "invalid_grant"
    assert all("client_id" in item or "expires_at" in item for item in items_of(granting))
    assert granting.refusal(lambda: granting.refresh(tokens)) == "invalid_grant"


def test_grant_that_was_just_deleted_is_not_revoked_as_a_part_of_an_item(granting: Granting) -> None:
    tokens = granting.tokens()
    tenant, grant_id = grant_of(tokens.access_token)
    with another_caller(lambda: delete_grant(granting, tokens.access_token), before="UpdateItem"):
        granting.grants.revoke(tenant, grant_id)
    assert items_of(granting) == []
    with pytest.raises(NotFound):
        granting.grants.revoke(tenant, grant_id)


def test_code_and_tokens_of_a_deleted_grant_are_refused(granting: Granting) -> None:
    """Their items may outlive it for a moment."""
    code, tokens = granting.code(), granting.tokens()
    for text in (code, tokens.access_token):
        tenant, grant_id = grant_of(text)
        granting.table.delete_all([(keys.grants(tenant), grant_id)])
    assert granting.refusal(lambda: granting.redeem(code)) == "invalid_grant"
    assert not granting.is_valid(tokens)
    assert granting.refusal(lambda: granting.refresh(tokens)) == "invalid_grant"


def test_grant_never_replaces_another(granting: Granting, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("shared.access.oauth.grants.secrets", SimpleNamespace(token_hex=lambda _: "0123456789abcdef"))
        first = granting.code()
        with pytest.raises(ConditionFailed):
            granting.code()
    assert granting.is_valid(granting.redeem(first))


def test_registration_never_replaces_another(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clients = OAuthClients(Table(config().access_table), "https://kho.example", None)
    with monkeypatch.context() as patched:
        patched.setattr("secrets.token_hex", lambda _: "0123456789abcdef" * 2)
        first, _ = clients.register({"redirect_uris": ["https://app.example/cb"]})
        try:
            with pytest.raises(ConditionFailed):
                clients.register({"redirect_uris": ["https://evil.example/cb"]})
            assert clients.find(first.id) == first
        finally:
            Table(config().access_table).delete_all([keys.oauth_client(first.id)])


def decided(client: OAuthTestClient, page: Answer, key: str, act: Callable[[], object]) -> Answer:
    with another_caller(act, before="TransactWriteItems"):
        return client.decide(page, key=key)


def test_only_one_of_two_decisions_on_a_page_counts(client: OAuthTestClient, key: str) -> None:
    page = client.open_page()
    first: list[Answer] = []
    assert decided(client, page, key, lambda: first.append(client.decide(page, key=key))).status == 400
    assert client.redeem(first[0].redirect["code"]).status == 200


def test_request_that_was_just_denied_is_not_granted(client: OAuthTestClient, key: str) -> None:
    page = client.open_page()
    assert decided(client, page, key, lambda: client.decide(page, decision="deny")).status == 400


def test_request_that_was_just_granted_is_not_denied(client: OAuthTestClient, key: str) -> None:
    page = client.open_page()
    granted: list[Answer] = []
    with another_caller(lambda: granted.append(client.decide(page, key=key)), before="DeleteItem"):
        assert client.decide(page, decision="deny").status == 400
    assert client.redeem(granted[0].redirect["code"]).status == 200


def test_client_that_was_just_deleted_gets_no_code(client: OAuthTestClient, key: str) -> None:
    """Nor does its registration come back as a part of an item."""
    page = client.open_page()
    place = keys.oauth_client(client.client_id)
    table = Table(config().access_table)
    assert decided(client, page, key, lambda: table.delete_all([place])).status == 400
    assert table.get(*place) is None


@pytest.mark.parametrize("ended", ["visit", "request"])
def test_visit_to_the_provider_ends_once(granting: Granting, ended: str) -> None:
    """Of two returns from the provider one gets the page, and none if the person has decided meanwhile."""
    requests = AuthorizationRequests(Table(config().access_table))
    handle = requests.store(granting.request)
    visit = requests.start_sign_in(handle)
    owner = ResourceOwner(granting.key.tenant_id, "lan", "writer", "", None)
    won: list[Any] = []

    def act() -> None:
        if ended == "visit":
            won.append(requests.finish_sign_in(visit, owner))
        else:
            granting.table.write(requests.removal(handle))

    with another_caller(act, before="TransactWriteItems"):
        assert requests.finish_sign_in(visit, owner) is None
    assert requests.find(handle) is None
    for _, new_handle in won:
        assert requests.find(new_handle)


def test_visit_to_the_provider_is_ended_by_one_of_two_returns(granting: Granting) -> None:
    """So a visit costs the provider one call at most."""
    requests = AuthorizationRequests(Table(config().access_table))
    visit = requests.start_sign_in(requests.store(granting.request))
    ended: list[Any] = []
    with another_caller(lambda: ended.append(requests.end_sign_in(visit.state)), before="DeleteItem"):
        assert requests.end_sign_in(visit.state) is None
    assert ended == [visit]
