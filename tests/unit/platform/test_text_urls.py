"""Addresses of documents in the results of a search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shared.platform.config import config
from shared.services.text_search import document_url, knowledge_url

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def public_url(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let clients reach the server at an address of its own."""
    monkeypatch.setenv("KHO_PUBLIC_URL", "https://kho.example")
    config.cache_clear()
    yield
    config.cache_clear()


@pytest.mark.usefixtures("public_url")
def test_url_is_the_source_or_a_page_of_the_console() -> None:
    assert document_url("doc-pf:1") == "https://kho.example/console/#/documents/doc-pf:1"
    assert knowledge_url("notes", "docs/a b.md") == "https://kho.example/console/#/knowledge/notes/docs/a%20b.md"
    assert knowledge_url("a/b", "x#y.md") == "https://kho.example/console/#/knowledge/a%2Fb/x%23y.md"
    assert knowledge_url("notes", "https://plants.example/fern") == "https://plants.example/fern"


def test_without_a_public_address_url_is_the_resource(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KHO_PUBLIC_URL", raising=False)
    config.cache_clear()
    assert document_url("doc-pf") == "agent-data://document/doc-pf"
    assert knowledge_url("notes", "a b.md") == "knowledge://collections/notes#a%20b.md"
