"""OAuth's functions in this process, at the real store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shared.access.api_keys import ApiKeys
from shared.aws.dynamodb import Table
from shared.platform.config import config
from tests.helpers.oauth_client import OAuthTestClient
from tests.integration.access.oauth.functions import forget_settings, reset_oauth, send

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shared.access.api_keys import ApiKey
    from shared.rpc.caller import Role


@pytest.fixture(autouse=True)
def _oauth(store: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    reset_oauth(monkeypatch)
    yield
    forget_settings()


@pytest.fixture
def client() -> OAuthTestClient:
    """Return a registered client."""
    registered = OAuthTestClient(send)
    assert registered.register().status == 201
    return registered


@pytest.fixture
def make_key(tenant: str) -> Callable[[Role], tuple[ApiKey, str]]:
    """Return a function that creates a key of the tenant."""
    return lambda role: ApiKeys(Table(config().access_table)).create(tenant, role)


@pytest.fixture
def key(make_key: Callable[[Role], tuple[ApiKey, str]]) -> str:
    """Return the text of a writer's key."""
    return make_key("writer")[1]
