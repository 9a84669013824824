"""Client-id metadata documents: fetched once, from public addresses alone."""

from __future__ import annotations

import json
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from shared.access.oauth.clients import DOCUMENT_LIMITS, ClientDocuments
from shared.access.oauth.errors import OAuthError
from shared.platform.public_address import PublicClient
from tests.helpers.certificates import certify
from tests.helpers.clock import Clock
from tests.helpers.oauth_client import CALLBACK
from tests.integration.test_public_address import PUBLIC, Peer, peer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

URL = "https://good.example/client.json"
DOCUMENT: dict[str, Any] = {"client_id": URL, "client_name": "Good", "redirect_uris": [CALLBACK], "scope": "reader"}


def response(document: Any, status: str = "200 OK", *headers: str) -> bytes:
    """Return an HTTP response with this document."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", "content-type: application/json", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@pytest.fixture
def fetch(tmp_path: Path) -> Iterator[Callable[..., ClientDocuments]]:
    """Yield a function that returns the documents of a server which gives one response."""
    certificate = certify("good.example", tmp_path)
    trusting = ssl.create_default_context(cafile=certificate.authority)
    running = []

    def serve(answer: bytes, clock: Clock | None = None) -> ClientDocuments:
        context = peer(answer, tls=certificate.serving())
        server: Peer = context.__enter__()
        running.append((context, server))
        client = PublicClient(DOCUMENT_LIMITS, lambda _host, _port: [PUBLIC], server.connect, trusting)
        documents = ClientDocuments(client, clock or Clock())
        serve.server = server  # type: ignore[attr-defined] # for the test to look at
        return documents

    yield serve
    for context, _ in running:
        context.__exit__(None, None, None)


def test_document_describes_the_client(fetch: Callable[..., ClientDocuments]) -> None:
    """It is fetched again after five minutes."""
    clock = Clock()
    documents = fetch(response(DOCUMENT), clock)
    for _ in range(3):
        client = documents.client(URL)
        assert (client.id, client.name, client.redirect_uris, client.scope) == (URL, "Good", (CALLBACK,), "reader")
        assert client.auth_method == "none"
    requests = fetch.server.requests  # type: ignore[attr-defined] # see there
    assert len(requests) == 1
    clock.advance(301)
    documents.client(URL)
    assert len(requests) == 2


UNUSABLE: dict[str, bytes] = {
    "another id": response(DOCUMENT | {"client_id": "https://good.example/other.json"}),
    "no object": response([DOCUMENT]),
    "no JSON": response(b"<html>"),
    "a secret": response(DOCUMENT | {"client_secret": "s"}),
    "a method with a secret": response(DOCUMENT | {"token_endpoint_auth_method": "client_secret_post"}),
    "no redirect URI": response(DOCUMENT | {"redirect_uris": []}),
    "an unsafe redirect URI": response(DOCUMENT | {"redirect_uris": ["javascript:alert(1)"]}),
    "too large": response(DOCUMENT | {"client_name": "x" * 20_000}),
    "not found": response(DOCUMENT, "404 Not Found"),
    "a redirect": response(b"", "302 Found", "location: https://good.example/real.json"),
    "a redirect to loopback": response(b"", "302 Found", "location: https://127.0.0.1/client.json"),
    "a page": response(DOCUMENT).replace(b"application/json", b"text/html"),
}


@pytest.mark.parametrize("answer", UNUSABLE.values(), ids=UNUSABLE)
def test_unusable_documents_are_refused(fetch: Callable[..., ClientDocuments], answer: bytes) -> None:
    """The failure is cached: a request for access cannot be used to flood an address."""
    documents = fetch(answer)
    for _ in range(2):
        with pytest.raises(OAuthError):
            documents.client(URL)
    assert len(fetch.server.requests) == 1  # type: ignore[attr-defined] # see there


@pytest.mark.parametrize(
    "url",
    [
        "https://good.example",
        "https://good.example/",
        "https://good.example/a/../b",
        "https://user@good.example/client.json",
        "https://good.example/client.json#x",
        f"https://good.example/{'x' * 600}",
        "https://good.example/clïent.json",
    ],
)
def test_addresses_that_cannot_be_ids_are_not_fetched(fetch: Callable[..., ClientDocuments], url: str) -> None:
    documents = fetch(response(DOCUMENT))
    with pytest.raises(OAuthError):
        documents.client(url)
    assert fetch.server.connected == []  # type: ignore[attr-defined] # see there
