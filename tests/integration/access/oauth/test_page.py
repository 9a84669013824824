"""The sign-in page: the facts that it shows, in the person's language."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from selectolax.lexbor import LexborHTMLParser

from shared.access.oauth.clients import CONSOLE
from shared.rpc.caller import ROLES
from shared.rpc.mcp_catalog import TOOLSETS, mcp_catalog
from tests.helpers.oauth_client import PUBLIC_URL, Answer, OAuthTestClient
from tests.integration.access.oauth.functions import send

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.access.api_keys import ApiKey
    from shared.rpc.caller import Role


def texts(page: Answer, selector: str) -> list[str]:
    return [each.text() for each in LexborHTMLParser(page.body).css(selector)]


def test_page_names_client_host_resource_roles_and_tools(client: OAuthTestClient) -> None:
    page = client.open_page(scope="writer reader")
    assert page.status == 200
    assert "“Test client”" in page.body
    assert texts(page, "strong") == ["app.example"]
    assert f"{PUBLIC_URL}/mcp" in page.body
    roles = LexborHTMLParser(page.body).css("input[type=radio]")
    assert [each.attributes["value"] for each in roles] == ["reader", "writer"]
    usable = [each for each in mcp_catalog().tools if each.role in ("reader", "writer")]
    assert texts(page, "li") == [f"{each.described['title']} ({each.role})" for each in usable]


@pytest.mark.parametrize("toolset", TOOLSETS)
def test_page_lists_the_tools_of_a_toolset(client: OAuthTestClient, toolset: str) -> None:
    page = client.open_page(scope="admin", resource=f"{PUBLIC_URL}/mcp/{toolset}")
    tools = mcp_catalog().of(*TOOLSETS[toolset].methods).tools
    assert texts(page, "li") == [f"{each.described['title']} ({each.role})" for each in tools]


def test_page_of_a_device_lists_no_other_tools(client: OAuthTestClient) -> None:
    assert texts(client.open_page(resource=f"{PUBLIC_URL}/mcp/devices/lamp"), "li") == []


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", "en"),
        ("vi", "vi"),
        ("vi-VN,vi;q=0.9,en;q=0.8", "vi"),
        ("en-GB,vi;q=0.5", "en"),
        ("de, fr;q=0.9, vi;q=0.2", "vi"),
        ("*;q=1, nonsense;;", "en"),
    ],
)
def test_page_is_in_the_persons_language(client: OAuthTestClient, accepted: str, language: str) -> None:
    page = client.open_page({"accept-language": accepted})
    assert page.headers["content-language"] == language
    assert f'<html lang="{language}">' in page.body
    assert ("Cho phép" if language == "vi" else "Allow") in page.body


def test_console_is_a_client_without_registration(
    make_key: Callable[[Role], tuple[ApiKey, str]],
) -> None:
    """Its token for all of Kho works at every endpoint."""
    callback = f"{PUBLIC_URL}/console/"
    client = OAuthTestClient(send, client_id=CONSOLE)
    changes = {"redirect_uri": callback, "resource": PUBLIC_URL, "scope": " ".join(ROLES)}
    code = client.code(make_key("admin")[1], **changes)
    tokens = client.redeem(code, redirect_uri=callback, resource=PUBLIC_URL).json
    assert tokens["scope"] == "admin"
    assert client.open_page(redirect_uri="https://app.example/callback").status == 400
    call = send(
        "POST",
        "/mcp",
        body='{"jsonrpc": "2.0", "id": 1, "method": "ping"}',
        authorization=f"Bearer {tokens['access_token']}",
        **{"content-type": "application/json", "accept": "application/json, text/event-stream"},
    )
    assert call.status == 200


def test_wrong_key_is_asked_again(client: OAuthTestClient, key: str) -> None:
    page = client.open_page()
    for fields in ({"key": "kho_wrong"}, {}):
        refused = client.decide(page, None, **fields)
        assert refused.status == 403
        assert texts(refused, "[role=alert]")
    location = client.decide(page, key=f" {key} ").headers["location"]
    assert urlsplit(location).netloc == "app.example"
