"""Redirect URIs: those that may be registered, their comparison, and what pages show and allow of them."""

from __future__ import annotations

import pytest

from shared.access.oauth.redirect_uris import host_of, is_redirect_uri, matches, source_of

LONGEST = "https://app.example/" + "a" * 980


@pytest.mark.parametrize(
    "uri",
    [
        "https://app.example/callback",
        "https://app.example:8443/callback?a=b",
        "https://10.0.0.1/callback",
        "https://[2001:db8::1]:8443/callback",
        "http://127.0.0.1/callback",
        "http://127.0.0.1:5555/callback",
        "http://[::1]:5555/callback",
        "http://localhost:5555/callback",
        "com.example.app:/callback",
        "cursor://anysphere.cursor-mcp/oauth/callback",
        LONGEST,
    ],
)
def test_addresses_that_may_be_registered(uri: str) -> None:
    assert is_redirect_uri(uri)


@pytest.mark.parametrize(
    "uri",
    [
        f"{LONGEST}a",
        "",
        "callback",
        "/callback",
        "//app.example/callback",
        "https:",
        "https:///callback",
        "https://:443/callback",
        "https://app.example:99999/callback",
        "https://app.example:x/callback",
        "https://app.example/call back",
        "https://app.example/callback\n",
        "https://app.example/callback#fragment",
        "https://app.example/callback#",
        "https://user@app.example/callback",
        "com.example.app://user@callback",
        "https://app.example@evil.example/callback",
        "https://app_.example/callback",
        "https://app.example[/callback",
        "https://a.example]b/callback",
        "https://APP.example/callback",
        "https://\u0430pp.example/callback",
        "HTTPS://app.example/callback",
        "http://app.example/callback",
        "http://127.0.0.2/callback",
        "http://127.0.0.1.evil.example/callback",
        "http://[::2]/callback",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "about:blank",
        "blob:https://app.example/x",
        "chrome://settings",
        "filesystem:https://app.example/x",
        "ftp://app.example/x",
        "intent://app.example/x",
        "mailto:a@app.example",
        "vbscript:x",
        "view-source:https://app.example",
        "ws://app.example/x",
        "wss://app.example/x",
    ],
)
def test_addresses_that_may_not_be_registered(uri: str) -> None:
    assert not is_redirect_uri(uri)


def test_scheme_that_only_begins_like_a_forbidden_one_is_an_application() -> None:
    assert is_redirect_uri("dataviewer:/callback")
    assert is_redirect_uri("my-file:/callback")


@pytest.mark.parametrize(
    "registered", ["http://127.0.0.1:1/cb?a=b", "http://[::1]/cb?a=b", "http://localhost:1/cb?a=b"]
)
def test_port_of_a_loopback_address_is_free(registered: str) -> None:
    host = registered.removeprefix("http://").partition("/")[0].removesuffix(":1")
    assert matches(registered, f"http://{host}:5555/cb?a=b")
    assert matches(registered, f"http://{host}/cb?a=b")
    for other in ("/cb", "/cb?a=c", "/other?a=b", "/cb?a=b#f"):
        assert not matches(registered, f"http://{host}:5555{other}")
    assert not matches(registered, f"https://{host}:5555/cb?a=b")
    assert not matches(registered, f"http://{host}:99999/cb?a=b")
    assert not matches(registered, f"http://user@{host}:5555/cb?a=b")
    assert not matches(registered, "http://app.example:5555/cb?a=b")


@pytest.mark.parametrize(
    ("registered", "presented"),
    [
        ("https://app.example/cb", "https://app.example:443/cb"),
        ("https://app.example:1/cb", "https://app.example:2/cb"),
        ("https://app.example/cb", "https://app.example/cb/"),
        ("https://localhost:1/cb", "https://localhost:2/cb"),
        ("http://127.0.0.1:1/cb", "http://localhost:1/cb"),
        ("com.example.app:/cb", "com.example.app:/cb2"),
    ],
)
def test_other_addresses_match_exactly(registered: str, presented: str) -> None:
    assert matches(registered, registered)
    assert not matches(registered, presented)
    assert not matches(presented, registered)


@pytest.mark.parametrize(
    ("uri", "host", "source"),
    [
        ("https://app.example/callback", "app.example", "https://app.example"),
        ("https://app.example:8443/callback", "app.example:8443", "https://app.example:8443"),
        ("http://127.0.0.1:5555/callback", "127.0.0.1:5555", "http://127.0.0.1:5555"),
        ("http://[::1]:5555/callback", "[::1]:5555", "http:"),
        ("https://[2001:db8::1]/callback", "[2001:db8::1]", "https:"),
        ("com.example.app:/callback", "com.example.app:", "com.example.app:"),
    ],
)
def test_what_people_see_and_the_policy_allows(uri: str, host: str, source: str) -> None:
    assert (host_of(uri), source_of(uri)) == (host, source)
