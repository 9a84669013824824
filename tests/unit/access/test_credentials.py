"""Headers that prove nothing are refused before the store is asked, which unit tests cannot reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shared.access.api_keys import ApiKeys
from shared.access.credentials import CachingVerifier, CredentialVerifier
from shared.access.models import Identity
from shared.access.oauth.errors import OAuthError
from shared.access.oauth.resources import canonical_resource, catalog_of, is_resource, scopes_of
from shared.platform.config import config
from shared.rpc.caller import Caller
from shared.rpc.errors import NotSignedIn
from tests.helpers.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Iterator

SYNTAX = "Authorization must be 'Bearer' and a key or a token."
INVALID = "This is not a valid key."


@pytest.fixture(autouse=True)
def _without_provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("KHO_OIDC_ISSUER", raising=False)
    config.cache_clear()
    yield
    config.cache_clear()


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("", SYNTAX),
        ("Bearer", SYNTAX),
        ("Bearer ", SYNTAX),
        ("Basic a2V5", SYNTAX),
        ("Bearerx key", SYNTAX),
        ("Bearer ké", SYNTAX),
        ("Bearer " + "x" * 8193, SYNTAX),
        ("Bearer " + "x" * 8192, INVALID),
        ("bearer  x ", INVALID),
        ("Bearer a.b.c", INVALID),
    ],
)
def test_other_headers_prove_nothing(header: str, message: str) -> None:
    with pytest.raises(NotSignedIn) as refused:
        CredentialVerifier("no table").verify(header)
    assert refused.value.message == message


@pytest.mark.parametrize(
    "text",
    [
        "kho_",
        f"kho_{'0' * 16}_{'0' * 63}",
        f"kho_{'0' * 16}_{'0' * 65}",
        f"kho_{'0' * 15}_{'0' * 64}",
        f"kho_{'0' * 16}_{'0' * 64}\n",
        f"kho_{'0' * 16}_{'A' * 64}",
        f" kho_{'0' * 16}_{'0' * 64}",
        f"kho_{'٠' * 16}_{'0' * 64}",
    ],
)
def test_malformed_keys_are_refused_without_a_look_into_the_store(text: str) -> None:
    with pytest.raises(NotSignedIn, match="This is not a valid key"):
        ApiKeys(None).authenticate(text)  # type: ignore[arg-type] # there is no table


class Accepting:
    """A verifier that accepts everything and counts what it was asked."""

    def __init__(self, expires_at: float | None = None) -> None:
        self.asked = 0
        self.expires_at = expires_at

    def verify(self, _authorization: str) -> Identity:
        self.asked += 1
        return Identity(Caller("sub", frozenset(), "tenant"), self.expires_at)


def times_asked(verifier: Accepting, *seconds: float) -> list[int]:
    """Return how often the verifier was asked after a use at each of these times."""
    clock = Clock(1_000_000.0)
    caching = CachingVerifier(verifier, clock)  # type: ignore[arg-type] # as CredentialVerifier
    counts = []
    for each in seconds:
        clock.now = 1_000_000.0 + each
        caching.verify("Bearer x")
        counts.append(verifier.asked)
    return counts


def test_identity_is_remembered_for_60_seconds() -> None:
    assert times_asked(Accepting(), 0, 59.9, 60, 119, 120.1) == [1, 1, 2, 2, 3]


def test_identity_is_not_remembered_after_its_own_end() -> None:
    assert times_asked(Accepting(1_000_010.0), 0, 9.9, 10) == [1, 1, 2]
    assert times_asked(Accepting(1_000_300.0), 0, 59.9, 60) == [1, 1, 2]


PUBLIC = "https://kho.example"


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/mcp",
        "/mcp/recall-kit",
        "/mcp/documents",
        "/mcp/devices",
        "/mcp/devices/lamp-1",
        "/mcp/devices/" + "x" * 128,
    ],
)
def test_resources_of_this_server(path: str) -> None:
    assert is_resource(path)
    assert canonical_resource(f"{PUBLIC}{path}/", PUBLIC) == PUBLIC + path


@pytest.mark.parametrize(
    "resource",
    [
        "https://evil.example/mcp",
        "https://kho.example.evil.example/mcp",
        f"{PUBLIC}/mcpx",
        f"{PUBLIC}/mcp/nonsense",
        f"{PUBLIC}/mcp/documents/x",
        f"{PUBLIC}/x/documents",
        f"{PUBLIC}/mcp/devices/a/b",
        f"{PUBLIC}/mcp/devices/a\n",
        f"{PUBLIC}/mcp/devices/{'x' * 129}",
        f"{PUBLIC}/jsonrpc",
        "http://kho.example/mcp",
        f"{PUBLIC}/mcp?x",
    ],
)
def test_other_resources_are_refused(resource: str) -> None:
    with pytest.raises(OAuthError) as refused:
        canonical_resource(resource, PUBLIC)
    assert refused.value.code == "invalid_target"


def test_resource_is_that_of_all_tools_by_default() -> None:
    assert canonical_resource("", PUBLIC) == f"{PUBLIC}/mcp"


@pytest.mark.parametrize(
    ("path", "scopes"),
    [
        ("", ("reader", "writer", "operator")),
        ("/mcp", ("reader", "writer", "operator")),
        ("/mcp/devices", ("reader", "writer", "operator")),
        ("/mcp/devices/lamp", ("reader", "writer", "operator")),
        ("/mcp/documents", ("reader", "writer")),
        ("/mcp/recall-kit", ("reader", "writer")),
    ],
)
def test_scopes_of_a_resource_hold_no_more_than_its_tools_need(path: str, scopes: tuple[str, ...]) -> None:
    assert scopes_of(path) == scopes


def test_catalogue_of_a_resource_has_its_tools_alone() -> None:
    names = {path: catalog_of(path) for path in ("", "/mcp", "/mcp/recall-kit", "/mcp/documents")}
    tools = {path: {tool.method for tool in catalog.tools} for path, catalog in names.items() if catalog}
    assert tools[""] == tools["/mcp"] > tools["/mcp/documents"] > set()
    assert {method.partition("/")[0] for method in tools["/mcp/recall-kit"]} == {"recall-kit"}
    assert catalog_of("/mcp/devices/lamp") is None
