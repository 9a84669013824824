"""End-to-end tests call the endpoints of a real server."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from shared.platform.config import config
from shared.platform.runtime import runtime
from tests.helpers.environment import ORIGINAL_ENVIRONMENT
from tests.helpers.identity_provider import AUDIENCE, IdentityProvider, identity_provider
from tests.helpers.kho_server import KhoServer
from tests.helpers.model_server import ModelServer, model_server

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _as_a_user_has_it() -> Iterator[None]:
    """Give commands that a test starts the original environment of this process."""
    config.cache_clear()
    with patch.dict(os.environ, ORIGINAL_ENVIRONMENT, clear=True), patch.object(runtime, "environment", os.environ):
        yield
    config.cache_clear()  # other tests use another environment


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KhoServer]:
    """Yield a server that tests share. Each uses its own conversations."""
    nowhere = {"KHO_SEARCH_PROXY": "http://127.0.0.1:9"}
    with KhoServer(tmp_path_factory.mktemp("kho") / "data", environment=nowhere) as running:
        yield running


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    """Yield a running model."""
    with model_server() as running:
        yield running


@pytest.fixture(scope="session")
def provider() -> Iterator[IdentityProvider]:
    """Yield the identity provider that the guarded server trusts."""
    with identity_provider() as running:
        yield running


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory, provider: IdentityProvider) -> Iterator[KhoServer]:
    """Yield a server that requires credentials. Each test uses its own tenants."""
    trusting = {"KHO_OIDC_ISSUER": provider.issuer, "KHO_OIDC_AUDIENCE": AUDIENCE}
    data = tmp_path_factory.mktemp("guarded") / "data"
    with KhoServer(data, "--auth", "required", environment=trusting) as running:
        yield running
