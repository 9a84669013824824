"""Sign-in: Kho's own page or a key, held in memory alone; refused tokens; a lost connection."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.helpers.api_client import ApiClient, make_key
from tests.helpers.identity_provider import AUDIENCE, IdentityProvider, identity_provider
from tests.helpers.kho_server import KhoServer
from tests.helpers.wait import until
from tests.suites.browser.console_page import ConsolePage
from tests.suites.browser.held_calls import HeldCalls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import BrowserContext


@pytest.fixture(scope="session")
def provider() -> Iterator[IdentityProvider]:
    """Run an identity provider."""
    with identity_provider() as running:
        yield running


@pytest.fixture(scope="session")
def trusting(tmp_path_factory: pytest.TempPathFactory, provider: IdentityProvider) -> Iterator[KhoServer]:
    """Run a server whose people sign in with the identity provider."""
    environment = {
        "KHO_OIDC_ISSUER": provider.issuer,
        "KHO_OIDC_AUDIENCE": AUDIENCE,
        "KHO_OIDC_CLIENT_ID": "kho-console",
    }
    data = tmp_path_factory.mktemp("trusting") / "data"
    with KhoServer(data, "--auth", "required", environment=environment) as server:
        yield server


@pytest.fixture
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KhoServer]:
    """Run a server whose access tokens expire after seconds."""
    data = tmp_path_factory.mktemp("forgetful") / "data"
    with KhoServer(data, "--auth", "required", program="tests.suites.browser.short_tokens") as server:
        yield server


@pytest.fixture
def tab(context: BrowserContext, guarded: KhoServer) -> Iterator[ConsolePage]:
    """Return a tab of the guarded server, in which nothing forbidden happens."""
    opened = ConsolePage(context, guarded.address)
    yield opened
    assert (opened.foreign, opened.problems) == ([], [])


def stored(tab: ConsolePage) -> str:
    """Return everything that the browser stores for the console."""
    text: str = tab.page.evaluate("JSON.stringify({...localStorage, ...sessionStorage}) + document.cookie")
    return text


def test_person_signs_in_on_khos_own_page(tab: ConsolePage, guarded: KhoServer) -> None:
    """The console leads to Kho's sign-in page and back to the same page; its tokens are stored nowhere."""
    key = make_key(guarded.data, "acme", "admin")["key"]
    page = tab.open("try_it/tool-server/system/check")
    page.get_by_role("button", name="Send").click()
    page.get_by_role("dialog").get_by_role("button", name="Sign in").click()
    page.get_by_label("Your Kho key").fill(key)
    page.get_by_role("button", name="Allow").click()
    expect(page.get_by_role("heading", name="tool-server/system/check")).to_be_visible()
    assert page.url == f"{guarded.address}/console/#/try_it/tool-server/system/check"
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".state.good", has_text="200")).to_be_visible()
    assert not re.search(r"kho_|token|verifier", stored(tab))
    with page.expect_event("load"):
        page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def test_key_is_pasted_on_one_machine_and_forgotten(tab: ConsolePage, guarded: KhoServer) -> None:
    """A call that waits for the sign-in goes on after it. The key is stored nowhere, and asked for after a reload."""
    key = make_key(guarded.data, "acme", "reader")["key"]
    page = tab.open("start")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Key", exact=True).fill("kho_wrong")
    page.keyboard.press("Enter")
    expect(dialog.get_by_text("The server refused this key")).to_be_visible()
    assert tab.violations() == []
    dialog.get_by_label("Key", exact=True).fill(key)
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(page.locator(".count").first).to_be_visible()
    assert key not in stored(tab)
    page.reload()
    expect(dialog).to_be_visible()


def test_caller_without_the_role_is_told(tab: ConsolePage, guarded: KhoServer) -> None:
    """A reader is not offered the checks for admins. One who runs them sees the server's refusal, not a sign-in."""
    page = tab.open("start")
    page.get_by_role("dialog").get_by_label("Key", exact=True).fill(make_key(guarded.data, "acme", "reader")["key"])
    page.keyboard.press("Enter")
    expect(page.locator(".card .state.good")).to_have_count(5)
    expect(page.get_by_role("button", name="Check now")).to_have_count(0)
    page.evaluate("location.hash = '#/try_it/tool-server/system/check'")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".state.wrong", has_text="403")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_sign_in_can_be_given_up(tab: ConsolePage) -> None:
    """Escape closes the sign-in and leaves no error; the page stays usable."""
    page = tab.open("start")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    tab.settle()
    expect(page.locator(".error-box")).to_have_count(0)
    page.get_by_role("link", name="Connect", exact=True).click()
    expect(page.get_by_role("heading", name="Connect", exact=True)).to_be_visible()


def test_sign_in_that_was_given_up_does_not_return_with_a_late_answer(tab: ConsolePage) -> None:
    held = HeldCalls(tab.page, "devices/list")
    page = tab.open("start")
    expect(page.get_by_role("dialog")).to_be_visible()
    until(lambda: held.waiting)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    with page.expect_response("**/devices/list"):
        held.release()
    tab.settle()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_person_of_the_identity_provider_signs_in(
    context: BrowserContext, trusting: KhoServer, provider: IdentityProvider
) -> None:
    """The sign-in leads to the identity provider and back; the console has that person's tenant and role."""
    provider.person = {"sub": "lan", "tenant_id": "acme", "roles": ["writer"]}
    tab = ConsolePage(context, trusting.address)
    page = tab.open("try_it/tool-server/system/caller")
    page.get_by_role("button", name="Send", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name=re.compile("identity provider|single sign-on|sign in", re.IGNORECASE)).click()
    page.get_by_role("button", name="Allow").click()
    expect(page.get_by_role("heading", name="tool-server/system/caller")).to_be_visible()
    page.get_by_role("button", name="Send", exact=True).click()
    answer = page.locator("pre", has_text='"tenant_id"').first
    expect(answer).to_contain_text('"acme"')
    expect(answer).to_contain_text('"writer"')
    expect(answer).not_to_contain_text('"operator"')
    assert not re.search(r"kho_|token|verifier", stored(tab))
    assert {urlsplit(each).netloc for each in tab.foreign} == {urlsplit(provider.issuer).netloc}
    assert tab.problems == []


def test_expired_token_is_replaced_and_nothing_typed_is_lost(context: BrowserContext, forgetful: KhoServer) -> None:
    """An edit is saved after the access token has expired: it is replaced by the refresh token, without a sign-in."""
    key = make_key(forgetful.data, "acme", "writer")["key"]
    client = ApiClient(forgetful, key)
    client.result("agent-data/create_document", document_id="kept", parent_id="root", content={"body": "before"})
    tab = ConsolePage(context, forgetful.address)
    sent: list[str] = []
    tab.page.on("request", lambda request: sent.append(request.headers.get("authorization", "")))
    page = tab.open("documents/kept?view=edit")
    page.get_by_role("dialog").get_by_role("button", name="Sign in").click()
    page.get_by_label("Your Kho key").fill(key)
    page.get_by_role("button", name="Allow").click()
    page.get_by_label("Text", exact=True).fill("typed before the token expired")
    used = next(each for each in reversed(sent) if each)
    params = json.dumps({"document_id": "kept"}).encode()
    until(lambda: forgetful.post("/agent-data/get_document", params, authorization=used).status == 401)
    page.get_by_role("button", name="Save").click()
    expect(page.locator("article")).to_contain_text("typed before the token expired")
    assert client.result("agent-data/get_document", document_id="kept")["content"]["body"].startswith("typed")
    assert sent[-1] != used
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert (tab.foreign, tab.problems) == ([], [])


def test_token_endpoint_that_fails_for_now_ends_no_session(tab: ConsolePage, guarded: KhoServer) -> None:
    """A 503 of the token endpoint is an error of the call. The next call renews the token, without a sign-in."""
    page = tab.open("try_it/tool-server/system/caller")
    page.get_by_role("button", name="Send", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Sign in").click()
    page.get_by_label("Your Kho key").fill(make_key(guarded.data, "acme", "reader")["key"])
    page.get_by_role("button", name="Allow").click()
    page.get_by_role("heading", name="tool-server/system/caller").wait_for()
    page.route("**/oauth/token", lambda route: route.fulfill(status=503, json={"error": "temporarily_unavailable"}))
    page.route("**/tool-server/system/caller", lambda route: route.fulfill(status=401, json={}), times=1)
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("could not renew the sign-in just now")
    page.unroute("**/oauth/token")
    page.route("**/tool-server/system/caller", lambda route: route.fulfill(status=401, json={}), times=1)
    with page.expect_response("**/oauth/token") as renewed:
        page.get_by_role("button", name="Send", exact=True).click()
    assert renewed.value.ok
    expect(page.locator(".state.good", has_text="200")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_sign_in_over_plain_http_says_what_it_needs(tab: ConsolePage) -> None:
    """A browser that hides its cryptography from plain HTTP gets a message, not a button without effect."""
    page = tab.open("start")
    page.evaluate("Object.defineProperty(Crypto.prototype, 'subtle', { get: () => undefined })")
    page.get_by_role("dialog").get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("only over HTTPS")


def test_lost_connection_is_shown_and_found_again(console: ConsolePage, context: BrowserContext) -> None:
    """While the server is away the page says so; it goes on by itself when the server is back."""
    page = console.open("try_it/jsonrpc")
    context.set_offline(True)
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("status").filter(has_text="cannot be reached")).to_be_visible()
    assert console.violations() == []
    context.set_offline(False)
    expect(page.get_by_role("status").filter(has_text="cannot be reached")).to_have_count(0)
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".state.good", has_text="200")).to_be_visible()
