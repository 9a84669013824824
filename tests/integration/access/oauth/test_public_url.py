"""Without a public address no tokens are issued, and no address is guessed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from shared.platform.config import ConfigurationError, config
from tests.integration.access.oauth.functions import forget_settings, send

if TYPE_CHECKING:
    from tests.helpers.oauth_client import OAuthTestClient


def test_without_a_public_address_no_tokens_are_issued(
    client: OAuthTestClient, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = client.tokens(key)["access_token"]
    monkeypatch.setenv("KHO_PUBLIC_URL", "")
    forget_settings()
    for path in ("/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource/mcp"):
        answer = send("GET", path)
        assert answer.status == 404
        assert "KHO_PUBLIC_URL" in json.loads(answer.body)["error"]["guidance"]
    assert client.register().status == 404
    assert client.open_page().status == 404
    refused = send("POST", "/mcp", authorization=f"Bearer {token}")
    assert refused.status == 401
    assert refused.headers["www-authenticate"] == 'Bearer error="invalid_token"'


@pytest.mark.parametrize(
    "url", ["http://kho.example", "https://kho.example/path", "https://user@kho.example", "kho.example", "https://Kho"]
)
def test_public_address_is_an_origin(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("KHO_PUBLIC_URL", url)
    config.cache_clear()
    with pytest.raises(ConfigurationError, match="KHO_PUBLIC_URL"):
        config()
