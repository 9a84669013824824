"""API keys on the real store: shown once, stored as a hash, ended by expiry and revocation."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.access.api_keys import ApiKeys
from shared.access.credentials import CachingVerifier, CredentialVerifier
from shared.aws.dynamodb import ConditionFailed, Table
from shared.platform.config import config
from shared.rpc.caller import Caller
from shared.rpc.errors import NotFound, NotSignedIn
from tests.helpers.interference import another_caller

if TYPE_CHECKING:
    from shared.access.models import Identity

DAY = 86_400.0


@dataclass(slots=True)
class HandClock:
    """A clock that stands still until a test moves it."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def keys(clock: HandClock) -> ApiKeys:
    return ApiKeys(access_table(), clock)


def access_table() -> Table:
    return Table(config().access_table)


def refusal(keys: ApiKeys, text: str) -> str:
    with pytest.raises(NotSignedIn) as refused:
        keys.verify(text)
    return refused.value.message


def test_key_identifies_the_caller(keys: ApiKeys, tenant: str) -> None:
    key, text = keys.create(tenant, "writer", name="service-account@example.com")
    assert text.startswith(f"kho_{key.id}_")
    identity = keys.verify(text)
    assert identity.caller == Caller("service-account@example.com", frozenset({"writer"}), tenant)
    assert identity.expires_at is None


def test_keys_are_independent(keys: ApiKeys, tenant: str) -> None:
    (first, first_text), (second, second_text) = keys.create(tenant, "reader"), keys.create(tenant, "admin")
    assert first.id != second.id
    assert keys.verify(first_text).caller != keys.verify(second_text).caller
    mixed = f"kho_{first.id}_{second_text.rpartition('_')[2]}"
    assert refusal(keys, mixed) == "This is not a valid key."


def test_store_contains_only_the_hash(keys: ApiKeys, tenant: str) -> None:
    _, text = keys.create(tenant, "admin")
    items = str([item for page in Table(config().access_table).scan("") for item in page])
    assert tenant in items
    assert text.rpartition("_")[2] not in items


def test_malformed_keys_get_the_same_error(keys: ApiKeys, tenant: str) -> None:
    key, text = keys.create(tenant, "reader")
    flipped = text[:-1] + ("0" if text[-1] != "0" else "1")
    unknown = f"kho_{'0' * 16}_{text.rpartition('_')[2]}"
    for wrong in (
        flipped,
        unknown,
        text + "0",
        text[:-1],
        text.upper(),
        f" {text}",
        f"{text}\n",
        f"kho_{key.id}_",
        "kho_",
    ):
        assert refusal(keys, wrong) == "This is not a valid key."


@given(st.one_of(st.text(), st.from_regex(r"kho_[0-9a-f]{16}_[0-9a-f]{64}", fullmatch=True)))
def test_random_text_is_never_a_valid_key(text: str) -> None:
    assert refusal(ApiKeys(access_table()), text) == "This is not a valid key."


def test_key_expires(keys: ApiKeys, clock: HandClock, tenant: str) -> None:
    key, text = keys.create(tenant, "reader", expires_in=timedelta(days=1))
    created = clock.now
    clock.now = created + DAY - 0.01
    assert keys.verify(text).expires_at == created + DAY == key.ends
    clock.now = created + DAY
    assert refusal(keys, text) == "This key is expired."
    assert [each.state(clock.now) for each in keys.list_keys(tenant)] == ["expired"]


def test_revoked_key_is_rejected_and_stays_listed(keys: ApiKeys, clock: HandClock, tenant: str) -> None:
    key, text = keys.create(tenant, "admin")
    revoked = keys.revoke(key.id)
    assert refusal(keys, text) == "This key is revoked."
    clock.now += 5
    assert keys.revoke(key.id) == revoked, "the first revocation's time stays"
    assert keys.list_keys(tenant) == [revoked]


def test_revoking_an_unknown_key_fails(keys: ApiKeys) -> None:
    with pytest.raises(NotFound):
        keys.revoke("0" * 16)


def test_key_that_was_just_deleted_is_not_revoked_as_a_part_of_an_item(keys: ApiKeys, tenant: str) -> None:
    key, _ = keys.create(tenant, "reader")
    delete = lambda: access_table().delete_all([("keys", key.id)])  # noqa: E731
    with another_caller(delete, before="UpdateItem"), pytest.raises(NotFound):
        keys.revoke(key.id)
    assert access_table().get("keys", key.id) is None


def test_key_never_replaces_another(keys: ApiKeys, tenant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first, text = keys.create(tenant, "reader")
    monkeypatch.setattr("shared.access.api_keys.secrets", SimpleNamespace(token_hex=lambda _: first.id))
    with pytest.raises(ConditionFailed):
        keys.create(f"{tenant}-other", "admin")
    assert keys.verify(text).caller.tenant_id == tenant


def test_key_allows_its_tenant_its_role_and_those_below(keys: ApiKeys, clock: HandClock, tenant: str) -> None:
    key, _ = keys.create(tenant, "writer", expires_in=timedelta(hours=1))
    assert keys.allows(key.id, tenant, "writer")
    assert keys.allows(key.id, tenant, "reader")
    assert not keys.allows(key.id, tenant, "operator")
    assert not keys.allows(key.id, f"{tenant}-other", "writer")
    assert not keys.allows("0" * 16, tenant, "reader")
    clock.now += 3600
    assert not keys.allows(key.id, tenant, "writer")


def test_keys_are_listed_by_tenant_oldest_first(keys: ApiKeys, clock: HandClock, tenant: str) -> None:
    keys_made = []
    for _ in range(5):
        keys_made.append(keys.create(tenant, "reader")[0])
        clock.now += 1
    other, _ = keys.create(f"{tenant}-other", "reader")
    assert keys.list_keys(tenant) == keys_made
    assert keys.list_keys(f"{tenant}-other") == [other]
    assert [each for each in keys.list_keys() if each.tenant_id.startswith(tenant)] == [*keys_made, other]


def test_revocation_takes_effect_within_a_minute(keys: ApiKeys, clock: HandClock, tenant: str) -> None:
    cached = CachingVerifier(CredentialVerifier(config().access_table, clock), clock)
    key, text = keys.create(tenant, "reader")
    header = f"Bearer {text}"
    assert cached.verify(header).caller.tenant_id == tenant
    keys.revoke(key.id)
    clock.now += 60 - 0.01
    assert cached.verify(header).caller.tenant_id == tenant, "remembered"
    clock.now += 0.01
    with pytest.raises(NotSignedIn):
        cached.verify(header)


def test_cache_does_not_accept_expired_keys(keys: ApiKeys, clock: HandClock, tenant: str) -> None:
    cached = CachingVerifier(CredentialVerifier(config().access_table, clock), clock)
    _, text = keys.create(tenant, "reader", expires_in=timedelta(seconds=10))
    cached.verify(f"Bearer {text}")
    clock.now += 10
    with pytest.raises(NotSignedIn):
        cached.verify(f"Bearer {text}")


def test_concurrent_callers_keep_their_identity(keys: ApiKeys, clock: HandClock, tenant: str) -> None:
    keys_made = {f"Bearer {text}": key for key, text in (keys.create(tenant, "reader") for _ in range(20))}
    cached = CachingVerifier(CredentialVerifier(config().access_table, clock), clock, capacity=5)
    with ThreadPoolExecutor(16) as pool:
        for header, identity in pool.map(lambda header: (header, cached.verify(header)), [*keys_made] * 20):
            assert identity.caller.sub == keys_made[header].name


def test_the_cache_is_bounded(keys: ApiKeys, clock: HandClock, tenant: str) -> None:
    verified: list[str] = []

    class Noting(CredentialVerifier):
        def verify(self, authorization: str) -> Identity:
            verified.append(authorization)
            return super().verify(authorization)

    cached = CachingVerifier(Noting(config().access_table, clock), clock, capacity=2)
    headers = [f"Bearer {keys.create(tenant, 'reader')[1]}" for _ in range(3)]
    for header in [*headers, headers[2], headers[1], headers[0]]:
        cached.verify(header)
    assert verified == [*headers, headers[0]], "only the first had to go"


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic a2hv", "Token x", "kho_x", "Bearer é", "Bearer " + "x" * 9000]
)
def test_other_headers_do_not_authenticate(header: str) -> None:
    with pytest.raises(NotSignedIn):
        CredentialVerifier(config().access_table).verify(header)


def test_authorization_scheme_is_case_insensitive(keys: ApiKeys, tenant: str, clock: HandClock) -> None:
    _, text = keys.create(tenant, "reader")
    for header in (f"bearer {text}", f"BEARER  {text} "):
        assert CredentialVerifier(config().access_table, clock).verify(header).caller.tenant_id == tenant


def test_key_verification_does_not_import_cryptography(keys: ApiKeys, tenant: str) -> None:
    _, text = keys.create(tenant, "reader")
    program = (
        "import sys; from endpoints.authorizer import handler\n"
        f"event = {{'identitySource': ['Bearer {text}'], 'headers': {{}}, 'requestContext': {{}}}}\n"
        f"assert handler(event, None)['context']['tenant_id'] == '{tenant}'\n"
        "print([name for name in sys.modules if name.partition('.')[0] in ('cryptography', 'joserfc')])"
    )
    done = subprocess.run([sys.executable, "-c", program], env=os.environ, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
