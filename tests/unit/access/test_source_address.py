"""Source addresses: the gateway's own, or the word of a proxy that knows the operator's secret."""

from __future__ import annotations

import pytest

from shared.access.source_address import PROXY_HEADER, require_proxy, source_address
from shared.rpc.errors import NotSignedIn

SECRET = "of-the-proxy"
PROXY = "203.0.113.9"


@pytest.fixture
def _proxied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KHO_PROXY_SECRET", SECRET)


@pytest.mark.parametrize(
    ("seen", "address"),
    [
        ("198.51.100.7", "198.51.100.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("::ffff:198.51.100.7", "198.51.100.7"),
        ("", "unknown"),
        ("a.example", "unknown"),
    ],
)
def test_address_or_its_ipv6_network(seen: str, address: str) -> None:
    assert source_address(seen, {}) == address


@pytest.mark.usefixtures("_proxied")
@pytest.mark.parametrize("secret", ["", "wrong", SECRET.upper(), f"{SECRET} ", "ä"])
def test_word_of_others_does_not_count(secret: str) -> None:
    claims = {
        "x-forwarded-for": "198.51.100.7",
        "cloudfront-viewer-address": "198.51.100.7:1",
        PROXY_HEADER: secret,
    }
    assert source_address(PROXY, claims) == PROXY


def test_without_a_secret_no_proxy_is_believed() -> None:
    assert source_address(PROXY, {"x-forwarded-for": "198.51.100.7", PROXY_HEADER: ""}) == PROXY
    assert source_address(PROXY, {"x-forwarded-for": "198.51.100.7", PROXY_HEADER: "guess"}) == PROXY


@pytest.mark.usefixtures("_proxied")
@pytest.mark.parametrize(
    ("headers", "address"),
    [
        ({"x-forwarded-for": "198.51.100.7"}, "198.51.100.7"),
        # The client's own claim comes first, API Gateway appends the proxy's address.
        ({"x-forwarded-for": f"192.0.2.1, 198.51.100.7, {PROXY}"}, "198.51.100.7"),
        ({"x-forwarded-for": PROXY}, PROXY),
        ({}, PROXY),
        ({"cloudfront-viewer-address": "198.51.100.7:46532", "x-forwarded-for": "192.0.2.1"}, "198.51.100.7"),
        ({"cloudfront-viewer-address": "2001:db8:1:2:3:4:5:6:46532"}, "2001:db8:1:2::/64"),
        ({"cloudfront-viewer-address": "[2001:db8:1:2::6]:46532"}, "2001:db8:1:2::/64"),
    ],
)
def test_proxy_with_the_secret_names_the_client(headers: dict[str, str], address: str) -> None:
    assert source_address(PROXY, headers | {PROXY_HEADER: SECRET}) == address


@pytest.mark.parametrize("setting", ["KHO_PROXY_SECRET", "KHO_PROXY_SECRET_SECRET"])
def test_request_around_the_proxy_is_refused(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require_proxy({})
    monkeypatch.setenv(setting, SECRET)
    with pytest.raises(NotSignedIn, match="its public address alone"):
        require_proxy({})


@pytest.mark.usefixtures("_proxied")
def test_request_through_the_proxy_is_accepted() -> None:
    require_proxy({PROXY_HEADER: SECRET})
    with pytest.raises(NotSignedIn):
        require_proxy({PROXY_HEADER: f"{SECRET}x"})
