"""Client-id metadata documents can be switched off, for a place without Internet."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from oauth import authorize, metadata
from shared.platform.config import config
from tests.helpers.mcp_events import event

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=["true", "false"])
def documents(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, store: str) -> Iterator[bool]:
    """Yield whether metadata documents are fetched. The client's host does not exist."""
    assert store
    monkeypatch.setenv("KHO_AUTH", "required")
    monkeypatch.setenv("KHO_PUBLIC_URL", "http://127.0.0.1:8001")
    monkeypatch.setenv("KHO_CLIENT_METADATA_DOCUMENTS", request.param)
    config.cache_clear()
    yield request.param == "true"
    config.cache_clear()


def test_metadata_says_whether_documents_are_fetched(documents: bool) -> None:
    answer = metadata.handler(event("", "GET", "/.well-known/oauth-authorization-server"), None)
    assert json.loads(answer["body"])["client_id_metadata_document_supported"] is documents


def test_page_says_what_to_do(documents: bool) -> None:
    query = urlencode({"client_id": "https://client.invalid/client.json", "redirect_uri": "http://127.0.0.1/x"})
    answer = authorize.handler(event("", "GET", "/oauth/authorize") | {"rawQueryString": query}, None)
    assert answer["statusCode"] == 400
    expected = "KHO_CLIENT_METADATA_DOCUMENTS=false" if documents else "the client must register"
    assert expected in answer["body"]
