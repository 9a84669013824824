"""Redirect URIs: those that may be registered, their comparison, and what pages show and allow of them."""

from __future__ import annotations

import re

import pytest

from infra.prepare import ROOT
from shared.access.oauth.redirect_uris import KNOWN_SCHEMES, host_of, is_redirect_uri, matches, source_of

# Their programs were harmed by links before, or act without asking.
SYSTEM_SCHEMES = (
    *("ms-msdt", "ms-officecmd", "ms-settings", "ms-appinstaller", "ms-excel", "search-ms", "search", "shell", "ssh"),
    *("telnet", "ldap", "smb", "nfs", "dav", "vnc", "rdp", "tel", "sms", "facetime", "mailto", "jar", "feed", "git"),
    *("itms-services", "itms-apps", "x-apple.systempreferences", "microsoft.windows.camera", "chrome", "about", "blob"),
    *("intent", "market", "steam", "magnet", "view-source", "ws", "wss", "ftp", "filesystem", "vbscript", "data"),
    *("help", "res", "mk", "ms-its", "android-app", "web+app", "urn", "x", "com"),
    *("dataviewer", "my-file", "com.", ".com.example", "com..example", "com.example.", "com.-example", "com.example-"),
)
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


@pytest.mark.parametrize("scheme", SYSTEM_SCHEMES)
def test_schemes_of_the_system_are_refused(scheme: str) -> None:
    """RFC 8252, section 7.1: a private scheme is a reverse domain name. Any other may be a program of the system."""
    for rest in ("/callback", "//host/callback", "x", "javascript:alert(1)"):
        assert not is_redirect_uri(f"{scheme}:{rest}")
        assert not matches(f"{scheme}:{rest}", f"{scheme}:{rest}")


@pytest.mark.parametrize("scheme", sorted(KNOWN_SCHEMES))
def test_schemes_of_known_clients_need_a_host(scheme: str) -> None:
    """Without one, an editor takes the rest for a command, such as vscode:mcp/install."""
    assert is_redirect_uri(f"{scheme}://host/callback?a=b")
    for rest in ("callback", "/callback", "///callback", "mcp/install?name=x", "//user@host/callback", "//host#x"):
        assert not is_redirect_uri(f"{scheme}:{rest}")


def test_documentation_lists_the_known_schemes() -> None:
    page = (ROOT / "docs" / "oauth.md").read_text(encoding="utf-8")
    listed = re.search(r"without a dot that known clients use: (.+?)\. ", page, re.DOTALL)
    assert listed
    assert set(re.findall(r"`([a-z-]+)`", listed[1])) == KNOWN_SCHEMES


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
