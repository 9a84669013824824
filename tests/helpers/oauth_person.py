"""A person with a browser and a key, in front of a running server."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.helpers.oauth_client import Answer, OAuthTestClient

if TYPE_CHECKING:
    from tests.helpers.kho_server import KhoServer


class Person:
    """Signs in on the page that a client opens."""

    def __init__(self, server: KhoServer) -> None:
        self._server = server
        self.client = OAuthTestClient(self.send, server.address)

    def send(self, method: str, path: str, *, query: str = "", body: str = "", **headers: str) -> Answer:
        """Send a request to the server. Follow no redirect."""
        url = f"{self._server.address}{path}{f'?{query}' if query else ''}"
        response = self._server.http.request(method, url, body=body, headers=headers, redirect=False)
        received = {name.lower(): value for name, value in response.headers.items()}
        return Answer(response.status, received, response.data.decode())

    def sign_in(self, address: str, key: str) -> Answer:
        """Open the page at this address and allow the request. Return the redirect to the client."""
        assert address.startswith(f"{self._server.address}/oauth/authorize?")
        page = self.send("GET", "/oauth/authorize", query=urlsplit(address).query)
        assert page.status == 200, page.body
        answer = self.client.decide(page, key=key)
        assert answer.status == 303, answer.body
        return answer
