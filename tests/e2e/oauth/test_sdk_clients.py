"""OAuth clients of the MCP SDK and of FastMCP, from a 401 to a called tool."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import httpx2
import pytest
import urllib3
from fastmcp import Client as FastClient
from fastmcp.client.auth import OAuth
from mcp.client import Client as SdkClient
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl

from tests.helpers.api_client import make_key
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from tests.helpers.kho_server import KhoServer
    from tests.helpers.oauth_person import Person

CALLBACK = "http://localhost:3030/callback"


class Storage:
    """The SDK's token storage."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client_info: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client_info

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client_info = client_info


class Browser:
    """The SDK's browser, in which the person signs in."""

    def __init__(self, person: Person, key: str) -> None:
        self._person, self._key = person, key
        self._answer: dict[str, str] = {}
        self.visits = 0

    async def open(self, address: str) -> None:
        self.visits += 1
        self._answer = self._person.sign_in(address, self._key).redirect

    async def answer(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=self._answer["code"], state=self._answer["state"], iss=self._answer["iss"])


def provider(server: KhoServer, storage: Storage, browser: Browser, method: str | None = None) -> OAuthClientProvider:
    metadata = OAuthClientMetadata(
        client_name="SDK",
        redirect_uris=[AnyUrl(CALLBACK)],
        token_endpoint_auth_method=method,
    )
    return OAuthClientProvider(f"{server.address}/mcp", metadata, storage, browser.open, browser.answer)


async def call_tool(server: KhoServer, auth: OAuthClientProvider) -> Any:
    async with (
        httpx2.AsyncClient(auth=auth, timeout=60) as http,
        SdkClient(streamable_http_client(f"{server.address}/mcp", http_client=http)) as client,
    ):
        return (await client.call_tool("memory_get_or_create", {"conversation_id": "from-oauth"})).structured_content


@pytest.mark.parametrize("method", [None, "none", "client_secret_post", "client_secret_basic"])
def test_sdk_client_signs_in_refreshes_and_is_revoked(guarded: KhoServer, person: Person, method: str | None) -> None:
    key = make_key(guarded.data, f"oauth-{uuid4().hex}", "writer")["key"]
    storage, browser = Storage(), Browser(person, key)

    async def use() -> None:
        auth = provider(guarded, storage, browser, method)
        assert await call_tool(guarded, auth) == {"conversation_id": "from-oauth"}
        first = storage.tokens
        assert first
        assert first.scope == "writer"
        assert browser.visits == 1
        auth.context.token_expiry_time = 1
        await call_tool(guarded, auth)
        second = storage.tokens
        assert second
        assert browser.visits == 1
        assert second.refresh_token != first.refresh_token
        assert second.access_token != first.access_token
        # Every token of the family dies with one of them; the client signs in again.
        info = storage.client_info
        assert info
        assert second.refresh_token
        form = {"token": second.refresh_token, "client_id": info.client_id}
        if info.token_endpoint_auth_method == "client_secret_basic":
            form.pop("client_id")
        data, headers = auth.context.prepare_token_auth(form, {})
        assert person.client.post("/oauth/revoke", data, headers).status == 200
        refused = person.client.post(
            "/oauth/token", data | {"grant_type": "refresh_token", "refresh_token": second.refresh_token}, headers
        )
        assert refused.json["error"] == "invalid_grant"
        auth.context.token_expiry_time = 1
        await call_tool(guarded, auth)
        assert browser.visits == 2
        # After a restart the SDK refreshes before it has read the metadata.
        restarted = provider(guarded, storage, browser, method)
        await restarted._initialize()
        restarted.context.token_expiry_time = 1
        await call_tool(guarded, restarted)
        assert browser.visits == 2

    asyncio.run(use())


def is_answered(location: str) -> bool:
    """Follow the redirect. Return False if the client does not listen yet."""
    try:
        return urllib3.request("GET", location, retries=False, timeout=CEILING_SECONDS).status == 200
    except urllib3.exceptions.HTTPError:
        return False


def test_fastmcp_client_signs_in(guarded: KhoServer, person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    key = make_key(guarded.data, f"fast-{uuid4().hex}", "reader")["key"]
    visits: list[asyncio.Future[None]] = []

    def visit(address: str) -> None:
        location = person.sign_in(address, key).headers["location"]
        until(lambda: is_answered(location))  # the client listens a moment later

    def open_browser(address: str) -> bool:
        visits.append(asyncio.get_running_loop().run_in_executor(None, visit, address))
        return True

    monkeypatch.setattr("webbrowser.open", open_browser)

    async def use() -> None:
        async with FastClient(f"{guarded.address}/mcp", auth=OAuth()) as client:
            assert "memory_get_context" in {tool.name for tool in await client.list_tools()}
            assert "memory_add_message" not in {tool.name for tool in await client.list_tools()}
            with pytest.raises(Exception, match=r"(?i)not found|does not exist"):
                await client.call_tool("memory_get_context", {"conversation_id": "nowhere"})

    with pytest.warns(UserWarning, match="in-memory token storage"):
        asyncio.run(use())
    assert len(visits) == 1


def test_metadata_have_the_formats_of_their_rfcs(guarded: KhoServer) -> None:
    """RFC 8414, 9728 and 7591, by the SDK's models and by the rules that these do not check."""
    metadata = json.loads(guarded.get("/.well-known/oauth-authorization-server").data)
    server = OAuthMetadata.model_validate(metadata)
    assert str(server.issuer) == metadata["issuer"] == guarded.address
    assert server.code_challenge_methods_supported == ["S256"]
    assert server.response_types_supported == ["code"]
    assert server.client_id_metadata_document_supported
    assert server.authorization_response_iss_parameter_supported
    for name in ("authorization", "token", "registration", "revocation"):
        assert metadata[f"{name}_endpoint"].startswith(f"{guarded.address}/oauth/")
    for path in ("", "/mcp", "/mcp/documents", "/mcp/devices", "/mcp/devices/lamp-1"):
        resource = json.loads(guarded.get(f"/.well-known/oauth-protected-resource{path}").data)
        assert ProtectedResourceMetadata.model_validate(resource).authorization_servers
        # RFC 9728, section 3.3: identical to the identifier into which the well-known path was inserted.
        assert resource["resource"] == guarded.address + path
        assert resource["authorization_servers"] == [metadata["issuer"]]
        assert set(resource["scopes_supported"]) <= set(metadata["scopes_supported"])
    assert guarded.get("/.well-known/oauth-protected-resource/mcp/nothing").status == 404
    request = {"redirect_uris": [CALLBACK], "client_name": "X", "logo_uri": "https://x.example/x.png"}
    response = guarded.post("/oauth/register", json.dumps(request).encode())
    assert (response.status, response.headers["cache-control"]) == (201, "no-store")
    registered = json.loads(response.data)
    assert OAuthClientInformationFull.model_validate(registered).client_secret
    assert registered["client_secret_expires_at"] == 0
    assert registered["token_endpoint_auth_method"] == "client_secret_basic"
    assert registered["grant_types"] == ["authorization_code"]


def test_open_server_says_that_nothing_is_needed(server: KhoServer) -> None:
    for path in ("/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource/mcp"):
        response = server.get(path)
        assert response.status == 404
        assert json.loads(response.data)["error"]["message"] == "Nothing here needs credentials."
    assert json.loads(server.post("/oauth/register", b"{}").data)["error"] == "invalid_request"
