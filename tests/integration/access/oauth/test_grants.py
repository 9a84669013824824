"""Grants at the real store: codes, tokens, their lifetimes and their revocation."""

from __future__ import annotations

import hashlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from shared.access.api_keys import ApiKeys
from shared.access.credentials import CachingVerifier, CredentialVerifier
from shared.access.oauth.authorization_requests import AuthorizationRequest, AuthorizationRequests, ResourceOwner
from shared.access.oauth.clients import OAuthClient
from shared.access.oauth.errors import OAuthError
from shared.access.oauth.grants import Grants, IssuedTokens
from shared.access.oauth.token_text import read_token
from shared.aws.dynamodb import Table
from shared.platform.clock import SKEW_SECONDS
from shared.platform.config import config
from shared.rpc.errors import NotFound, NotSignedIn
from shared.rpc.observation import observe
from tests.helpers.clock import Clock
from tests.helpers.dynamodb_requests import intercept_requests
from tests.helpers.oauth_client import CALLBACK, PUBLIC_URL, VERIFIER, challenge_of
from tests.helpers.size import sized
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shared.access.api_keys import ApiKey
    from shared.rpc.caller import Role

CLIENT = OAuthClient("client-a", "A", (CALLBACK,))
RESOURCE = f"{PUBLIC_URL}/mcp"
CODE_SECONDS, ACCESS_SECONDS = 60, 3600
IDLE_SECONDS, GRANT_SECONDS = 30 * 86_400, 90 * 86_400
REPEAT_SECONDS = 30


class Granting:
    """A client that a person with a key has allowed to use Kho, at a time that the test sets."""

    def __init__(self, key: ApiKey, role: Role = "writer", **changes: Any) -> None:
        self.clock = Clock()
        self.table = Table(config().access_table)
        self.grants = Grants(self.table, self.clock)
        self.key = key
        fields: dict[str, Any] = {
            "client_id": CLIENT.id,
            "client_name": CLIENT.name,
            "redirect_uri": CALLBACK,
            "redirect_uri_sent": True,
            "code_challenge": challenge_of(VERIFIER),
            "resource": RESOURCE,
            "role": role,
            "refreshable": True,
        }
        self.request = AuthorizationRequest(**fields | changes)

    def code(self) -> str:
        """Return a new code."""
        key = self.key
        owner = ResourceOwner(key.tenant_id, key.name, key.role, key.id, int(key.ends) if key.ends else None)
        return self.grants.issue_code(self.request, owner, self.request.role)

    def redeem(self, code: str) -> IssuedTokens:
        """Exchange a code."""
        return self.grants.redeem(code, CLIENT, VERIFIER, CALLBACK, RESOURCE)

    def tokens(self) -> IssuedTokens:
        """Return the tokens of a new grant."""
        return self.redeem(self.code())

    def refresh(self, tokens: IssuedTokens) -> IssuedTokens:
        """Use the refresh token."""
        return self.grants.refresh(tokens.refresh_token, CLIENT, None, RESOURCE)

    def is_valid(self, tokens: IssuedTokens) -> bool:
        """Return whether the access token is accepted."""
        try:
            self.grants.verify(tokens.access_token)
        except NotSignedIn:
            return False
        return True

    def refusal(self, operation: Callable[[], object]) -> str:
        """Return OAuth's code of the error that the operation raises."""
        with pytest.raises(OAuthError) as refused:
            operation()
        return refused.value.code


@pytest.fixture
def granting(make_key: Callable[[Role], tuple[ApiKey, str]]) -> Granting:
    return Granting(make_key("writer")[0])


def test_code_gives_tokens_of_the_owners_tenant(granting: Granting, tenant: str) -> None:
    identity = granting.grants.verify(granting.tokens().access_token)
    assert identity.caller.tenant_id == tenant
    assert identity.caller.roles == {"writer"}
    assert identity.resource == RESOURCE
    assert identity.expires_at == int(granting.clock()) + ACCESS_SECONDS


@pytest.mark.parametrize(
    ("owner", "requested", "granted"), [("reader", "admin", "reader"), ("admin", "reader", "reader")]
)
def test_grant_never_exceeds_owner_or_request(
    make_key: Callable[[Role], tuple[ApiKey, str]], owner: Role, requested: Role, granted: Role
) -> None:
    assert Granting(make_key(owner)[0], requested).tokens().role == granted


def test_store_contains_hashes_only(granting: Granting, tenant: str) -> None:
    code = granting.code()
    first = granting.redeem(code)
    second = granting.refresh(first)
    stored = json.dumps(list(granting.table.scan(f"{tenant}#")), default=str)
    for text in (code, first.access_token, first.refresh_token, second.access_token, second.refresh_token, VERIFIER):
        assert text not in stored
        assert text.rpartition(".")[2] not in stored
    assert hashlib.sha256(second.access_token.encode()).hexdigest() in stored


def test_every_key_begins_with_the_tenant(granting: Granting, tenant: str) -> None:
    tokens = granting.tokens()
    reference = read_token("access", tokens.access_token)
    assert reference
    pages = granting.table.scan(f"{tenant}#")
    assert {item["pk"].partition("#")[2] for page in pages for item in page} == {
        "grants",
        f"grant#{reference.grant_id}",
    }


def test_code_lives_sixty_seconds(granting: Granting) -> None:
    early, late = granting.code(), granting.code()
    granting.clock.advance(CODE_SECONDS - 1)
    granting.redeem(early)
    granting.clock.advance(1)
    assert granting.refusal(lambda: granting.redeem(late)) == "invalid_grant"


def test_code_with_another_secret_gives_nothing(granting: Granting) -> None:
    """Tenant and grant are no secrets: only the whole code is one."""
    code = granting.code()
    forged = code[:-1] + ("A" if code[-1] != "A" else "B")
    assert granting.refusal(lambda: granting.redeem(forged)) == "invalid_grant"
    assert granting.is_valid(granting.redeem(code))


def test_code_of_a_request_without_redirect_uri_is_redeemed_without_one(
    make_key: Callable[[Role], tuple[ApiKey, str]],
) -> None:
    granting = Granting(make_key("writer")[0], redirect_uri_sent=False)
    code = granting.code()
    assert granting.refusal(lambda: granting.redeem(code)) == "invalid_grant"
    assert granting.is_valid(granting.grants.redeem(code, CLIENT, VERIFIER, None, RESOURCE))


def test_tokens_end_with_the_key_that_signed(tenant: str) -> None:
    key, _ = ApiKeys(Table(config().access_table)).create(tenant, "writer", expires_in=timedelta(minutes=10))
    granting = Granting(key)
    tokens = granting.tokens()
    assert 595 <= tokens.expires_in <= 600
    granting.clock.advance(601)
    assert not granting.is_valid(tokens)
    assert granting.refusal(lambda: granting.refresh(tokens)) == "invalid_grant"


def test_access_token_lives_an_hour(granting: Granting) -> None:
    tokens = granting.tokens()
    granting.clock.advance(ACCESS_SECONDS - 1)
    assert granting.is_valid(tokens)
    granting.clock.advance(1)
    assert not granting.is_valid(tokens)


def test_refresh_token_lives_thirty_days_unused(granting: Granting) -> None:
    used, unused = granting.tokens(), granting.tokens()
    granting.clock.advance(IDLE_SECONDS - 2)
    used = granting.refresh(used)
    granting.clock.advance(2)
    assert granting.refusal(lambda: granting.refresh(unused)) == "invalid_grant"
    granting.clock.advance(IDLE_SECONDS - 10)
    assert granting.is_valid(granting.refresh(used))


def test_grant_ends_after_ninety_days(granting: Granting) -> None:
    tokens = granting.tokens()
    for _ in range(4):
        granting.clock.advance(GRANT_SECONDS / 4 - 600)
        tokens = granting.refresh(tokens)
    assert granting.is_valid(tokens)
    granting.clock.advance(2400)
    assert not granting.is_valid(tokens)
    assert granting.refusal(lambda: granting.refresh(tokens)) == "invalid_grant"


def test_client_without_refresh_tokens_gets_none(make_key: Callable[[Role], tuple[ApiKey, str]]) -> None:
    assert Granting(make_key("reader")[0], refreshable=False).tokens().refresh_token == ""


def test_replayed_code_revokes_what_was_issued(granting: Granting) -> None:
    code = granting.code()
    tokens = granting.redeem(code)
    assert granting.is_valid(tokens)
    assert granting.refusal(lambda: granting.redeem(code)) == "invalid_grant"
    assert not granting.is_valid(tokens)
    assert granting.refusal(lambda: granting.refresh(tokens)) == "invalid_grant"


def test_code_is_recognised_as_replayed_after_it_expired(granting: Granting) -> None:
    code = granting.code()
    tokens = granting.redeem(code)
    granting.clock.advance(CODE_SECONDS * 10)
    assert granting.refusal(lambda: granting.redeem(code)) == "invalid_grant"
    assert not granting.is_valid(tokens)


def test_reused_refresh_token_revokes_the_family(granting: Granting) -> None:
    first = granting.tokens()
    second = granting.refresh(first)
    third = granting.refresh(second)
    granting.clock.advance(REPEAT_SECONDS + 1)
    assert granting.refusal(lambda: granting.refresh(first)) == "invalid_grant"
    assert not any(map(granting.is_valid, (first, second, third)))
    assert granting.refusal(lambda: granting.refresh(third)) == "invalid_grant"


def test_replays_are_counted(granting: Granting) -> None:
    """A grant is revoked once: later replays cost no write."""
    tokens = granting.tokens()
    granting.refresh(tokens)
    writes: list[str] = []

    def note_writes(operation: str, _params: Any) -> None:
        if operation != "GetItem":
            writes.append(operation)

    with (
        observe("oauth/token", "0123456789abcdef") as observation,
        intercept_requests(note_writes),
    ):
        granting.refusal(lambda: granting.refresh(tokens))
        assert (observation.counts, writes) == ({"oauth_repeats": 1}, [])
        granting.clock.advance(REPEAT_SECONDS + 1)
        for _ in range(3):
            granting.refusal(lambda: granting.refresh(tokens))
    assert (observation.counts, writes) == ({"oauth_repeats": 1, "oauth_replays": 1}, ["UpdateItem"])


def test_another_grant_of_the_same_client_lives(granting: Granting) -> None:
    stolen, other = granting.tokens(), granting.tokens()
    granting.refresh(stolen)
    granting.clock.advance(REPEAT_SECONDS + 1)
    granting.refusal(lambda: granting.refresh(stolen))
    assert granting.is_valid(granting.refresh(other))


@pytest.mark.stress
def test_one_of_many_threads_redeems_a_code(granting: Granting, record_property: Callable[[str, object], None]) -> None:
    """Of many threads that redeem one code at the same moment, one gets tokens, and the replay revokes them."""
    rounds, threads = sized(3, full=100), 16
    for _ in range(rounds):
        code = granting.code()
        won = race(threads, partial(granting.redeem, code))
        assert len(won) == 1
        assert not granting.is_valid(won[0])
    record_property("load", f"{rounds} rounds of {threads} threads")
    record_property("outcome", "one winner each, whose tokens died")


@pytest.mark.parametrize("seconds", [0, 0.02, 0.2, 2, REPEAT_SECONDS - 0.1])
def test_repeated_refresh_gives_nothing_and_ends_nothing(granting: Granting, seconds: float) -> None:
    """A second use within 30 s is refused and changes nothing, whenever the first answer came."""
    first = granting.tokens()
    second = granting.refresh(first)
    stored = list(granting.table.scan(f"{granting.key.tenant_id}#"))
    granting.clock.advance(seconds)
    assert granting.refusal(lambda: granting.refresh(first)) == "invalid_grant"
    assert list(granting.table.scan(f"{granting.key.tenant_id}#")) == stored
    assert granting.is_valid(granting.refresh(second))


@pytest.mark.parametrize("seconds", [REPEAT_SECONDS, 60, 86_400])
def test_reuse_after_thirty_seconds_revokes(granting: Granting, seconds: float) -> None:
    first = granting.tokens()
    second = granting.refresh(first)
    granting.clock.advance(seconds)
    assert granting.refusal(lambda: granting.refresh(first)) == "invalid_grant"
    assert not granting.is_valid(second)
    assert granting.refusal(lambda: granting.refresh(second)) == "invalid_grant"


def test_each_used_token_has_its_own_thirty_seconds(granting: Granting) -> None:
    """Processes that share a token may refresh it twice in a row: an older one is judged by its own age too."""
    first = granting.tokens()
    second = granting.refresh(first)
    granting.clock.advance(20)
    third = granting.refresh(second)
    granting.clock.advance(5)
    assert granting.refusal(lambda: granting.refresh(first)) == "invalid_grant"
    assert granting.is_valid(third)
    granting.clock.advance(10)
    assert granting.refusal(lambda: granting.refresh(second)) == "invalid_grant"
    assert granting.is_valid(third)
    assert granting.refusal(lambda: granting.refresh(first)) == "invalid_grant"
    assert not granting.is_valid(third)


@pytest.mark.parametrize("seconds", [-2 * 86_400, -3600, -(SKEW_SECONDS + 1)])
def test_use_that_lies_in_the_future_protects_no_reuse(granting: Granting, seconds: float) -> None:
    """A clock that was ahead at the use, or went back after it, must not open the thirty seconds for days."""
    first = granting.tokens()
    second = granting.refresh(first)
    granting.clock.advance(seconds)
    assert granting.refusal(lambda: granting.refresh(first)) == "invalid_grant"
    assert granting.refusal(lambda: granting.refresh(second)) == "invalid_grant"


def test_clocks_of_two_functions_may_differ(granting: Granting) -> None:
    first = granting.tokens()
    second = granting.refresh(first)
    granting.clock.advance(-5)
    assert granting.refusal(lambda: granting.refresh(first)) == "invalid_grant"
    assert granting.is_valid(granting.refresh(second))


def test_refresh_that_another_overtakes_gives_nothing(granting: Granting) -> None:
    """Another request uses the token just before this one stores its use."""
    first, others = granting.tokens(), list[IssuedTokens]()

    def overtake(operation: str, _params: Any) -> None:
        if operation == "TransactWriteItems" and not others:
            others.append(IssuedTokens("", "", "reader", 0))
            others[0] = granting.refresh(first)

    with intercept_requests(overtake), pytest.raises(OAuthError, match="Another request has just used") as refused:
        granting.refresh(first)
    assert refused.value.code == "invalid_grant"
    assert granting.is_valid(granting.refresh(others[0]))


def test_refresh_that_a_revocation_overtakes_gives_nothing(granting: Granting) -> None:
    first = granting.tokens()
    stored: list[str] = []

    def revoke(operation: str, _params: Any) -> None:
        if operation == "TransactWriteItems":
            granting.grants.revoke_token(first.access_token, CLIENT)
            stored.extend(item["sk"] for page in granting.table.scan(f"{granting.key.tenant_id}#") for item in page)

    with intercept_requests(revoke), pytest.raises(OAuthError, match="expired or revoked") as refused:
        granting.refresh(first)
    assert refused.value.code == "invalid_grant"
    assert [item["sk"] for page in granting.table.scan(f"{granting.key.tenant_id}#") for item in page] == stored


@pytest.mark.stress
@pytest.mark.parametrize("gap_ms", [0, 20, 200, 2000])
def test_many_refreshes_with_one_token_lose_no_grant(
    granting: Granting, gap_ms: int, record_property: Callable[[str, object], None]
) -> None:
    """Of many refreshes with one token within 30 s, one gets tokens and none ends the grant. A later reuse ends it."""
    most, rounds, gap = sized(16, full=200), sized(1, full=20), gap_ms / 1000
    if gap:
        most = min(most, int(REPEAT_SECONDS / gap))
    for _ in range(rounds):
        first, start = granting.tokens(), granting.clock()
        moments = iter([start + number * gap for number in range(most)])

        def refresh_at_next_moment(first: IssuedTokens = first, moments: Iterator[float] = moments) -> IssuedTokens:
            grants = Grants(granting.table, Clock(next(moments)))
            return grants.refresh(first.refresh_token, CLIENT, None, RESOURCE)

        won = race(most // 2, refresh_at_next_moment)
        assert len(won) == 1
        for _ in range(most - most // 2):
            assert granting.refusal(refresh_at_next_moment) == "invalid_grant"
        assert granting.is_valid(won[0])
        # The winner may be any of the first half.
        granting.clock.advance(most // 2 * gap + REPEAT_SECONDS + 0.1)
        second = granting.refresh(won[0])
        assert granting.refusal(partial(granting.refresh, first)) == "invalid_grant"
        assert not granting.is_valid(second)
    apart = f"{gap_ms:,} ms apart" if gap else "at one moment"
    record_property("load", f"{rounds} x {most} refreshes {apart}, half of them at once in threads")
    record_property("outcome", "one winner each, 0 grants lost within 30 s, each later reuse revoked its grant")


def test_refreshes_at_the_same_moment_are_no_theft(granting: Granting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both requests have read the token as unused before either uses it: one wins, and its tokens live."""
    tokens = granting.tokens()
    both_have_read = threading.Barrier(2, timeout=CEILING_SECONDS)
    is_authorized = Grants._is_authorized

    def wait_for_the_other(grants: Grants, grant: Any) -> bool:
        both_have_read.wait(60)
        return is_authorized(grants, grant)

    with monkeypatch.context() as patched:
        patched.setattr(Grants, "_is_authorized", wait_for_the_other)
        won = race(2, lambda: granting.refresh(tokens))
    assert len(won) == 1
    assert granting.is_valid(won[0])
    assert granting.is_valid(granting.refresh(won[0]))


def race(threads: int, operation: Callable[[], IssuedTokens]) -> list[IssuedTokens]:
    """Run the operation in threads that start together. Return the results of those that were not refused."""
    start = threading.Barrier(threads, timeout=CEILING_SECONDS)

    def attempt() -> IssuedTokens | None:
        start.wait(60)
        try:
            return operation()
        except OAuthError:
            return None

    with ThreadPoolExecutor(threads) as pool:
        return [each for each in pool.map(lambda _: attempt(), range(threads)) if each]


@pytest.mark.parametrize("demoted", [False, True])
def test_grants_end_with_the_key_that_signed(granting: Granting, demoted: bool) -> None:
    """A revoked or demoted key ends its grants within 60 s, for functions that cache identities too."""
    tokens = granting.tokens()
    caching = CachingVerifier(CredentialVerifier(config().access_table, granting.clock), granting.clock)
    header = f"Bearer {tokens.access_token}"
    assert caching.verify(header).caller.tenant_id == granting.key.tenant_id
    if demoted:
        item = granting.table.get("keys", granting.key.id)
        assert item
        from shared.aws.dynamodb import Write

        granting.table.write(Write("Put", item | {"role": "reader"}))
    else:
        ApiKeys(granting.table).revoke(granting.key.id)
    assert not granting.is_valid(tokens)
    (listed,) = granting.grants.list_grants(granting.key.tenant_id)
    assert granting.grants.state(listed, granting.clock()) == "ended"
    granting.clock.advance(60)
    with pytest.raises(NotSignedIn):
        caching.verify(header)
    assert granting.refusal(lambda: granting.refresh(tokens)) == "invalid_grant"


def test_code_of_a_revoked_key_gives_nothing(granting: Granting) -> None:
    code = granting.code()
    ApiKeys(granting.table).revoke(granting.key.id)
    assert granting.refusal(lambda: granting.redeem(code)) == "invalid_grant"


def test_revocation_ends_all_tokens_of_the_grant(granting: Granting) -> None:
    for token in ("access_token", "refresh_token"):
        tokens = granting.tokens()
        granting.grants.revoke_token(getattr(tokens, token), OAuthClient("another", "", ()))
        assert granting.is_valid(tokens)
        granting.grants.revoke_token(getattr(tokens, token), CLIENT)
        assert not granting.is_valid(tokens)
        assert granting.refusal(partial(granting.refresh, tokens)) == "invalid_grant"
    granting.grants.revoke_token("khoa_nonsense", CLIENT)


def test_grants_are_listed_and_revoked_by_operators(granting: Granting, tenant: str) -> None:
    granting.code()  # it is not exchanged
    tokens = granting.tokens()
    (listed,) = granting.grants.list_grants(tenant)
    assert (listed.client_name, listed.role, listed.state(granting.clock())) == ("A", "writer", "active")
    assert listed in granting.grants.list_grants()
    assert granting.grants.revoke(tenant, listed.id).state(granting.clock()) == "revoked"
    assert not granting.is_valid(tokens)
    for tenant_id, grant_id in ((tenant, "0" * 16), ("another", listed.id), (tenant, "x#y")):
        with pytest.raises(NotFound):
            granting.grants.revoke(tenant_id, grant_id)


def test_narrowed_scope_is_possible_and_wider_is_not(granting: Granting) -> None:
    tokens = granting.tokens()
    assert (
        granting.refusal(lambda: granting.grants.refresh(tokens.refresh_token, CLIENT, "admin", "")) == "invalid_scope"
    )
    equal = granting.grants.refresh(tokens.refresh_token, CLIENT, "writer", "")
    assert granting.grants.verify(equal.access_token).caller.roles == {"writer"}
    narrow = granting.grants.refresh(equal.refresh_token, CLIENT, "reader", "")
    assert granting.grants.verify(narrow.access_token).caller.roles == {"reader"}


DAYS = 2 * 86_400


def test_code_of_a_clock_that_was_ahead_is_expired(granting: Granting) -> None:
    granting.clock.advance(DAYS)
    code = granting.code()
    granting.clock.advance(-DAYS)
    assert granting.refusal(lambda: granting.redeem(code)) == "invalid_grant"


def test_tokens_of_a_clock_that_was_ahead_ask_for_another_sign_in(granting: Granting) -> None:
    """They never outlive their hour and their thirty days. The next sign-in is as any other."""
    granting.clock.advance(DAYS)
    tokens = granting.tokens()
    granting.clock.advance(-DAYS)
    assert not granting.is_valid(tokens)
    assert granting.refusal(lambda: granting.refresh(tokens)) == "invalid_grant"
    assert granting.is_valid(granting.refresh(granting.tokens()))


def test_tokens_are_valid_again_once_a_clock_that_was_behind_is_right(granting: Granting) -> None:
    """A wrong clock ends no sign-in: it cannot know that it is wrong."""
    tokens = granting.tokens()
    granting.clock.advance(-DAYS)
    assert not granting.is_valid(tokens)
    granting.clock.advance(DAYS + 1)
    assert granting.is_valid(tokens)
    assert granting.is_valid(granting.refresh(tokens))


def test_authorization_request_of_a_clock_that_was_ahead_is_over(granting: Granting) -> None:
    requests = AuthorizationRequests(granting.table, granting.clock)
    granting.clock.advance(DAYS)
    handle = requests.store(granting.request)
    visit, other = requests.start_sign_in(handle), requests.start_sign_in(handle)
    assert requests.find(handle)
    assert requests.end_sign_in(other.state)
    granting.clock.advance(-DAYS)
    assert requests.find(handle) is None
    assert requests.end_sign_in(visit.state) is None
