"""The console's shell: languages, themes, widths, navigation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from playwright.sync_api import expect

from tests.helpers.wait import until
from tests.suites.browser.console_page import PAGES, THEMES, WIDTHS, ConsolePage

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Response

    from tests.helpers.kho_server import KhoServer

_TRANSFERRED: Final = """performance.getEntriesByType("resource")
  .filter(each => each.name.includes("/console/") && each.transferSize > 0).map(each => each.name)"""

# Types in the search box in the moment in which it appears, and counts the frames that are drawn afterwards.
_TYPE_AT_ONCE: Final = """() => new MutationObserver((_, observer) => {
    const box = document.querySelector("main input[type=search]");
    if (!box) return;
    observer.disconnect();
    box.value = "typed early";
    box.dispatchEvent(new Event("input", { bubbles: true }));
    window.framesAfterTyping = 0;
    const count = () => ++window.framesAfterTyping < 3 && requestAnimationFrame(() => setTimeout(count));
    requestAnimationFrame(() => setTimeout(count));
}).observe(document.body, { childList: true, subtree: true })"""


@pytest.mark.parametrize("name", PAGES)
def test_page_is_accessible_at_every_width_and_theme(console: ConsolePage, name: str) -> None:
    """Every page has no violation that axe-core knows, and fits the window, at three widths in both themes."""
    console.open(name)
    assert console.faults() == []


def test_vietnamese_pages_are_accessible_and_fit(browser: Browser, server: KhoServer) -> None:
    """Every page in Vietnamese has no violation that axe-core knows, and fits the narrowest window."""
    faults = []
    with browser.new_context(locale="vi-VN") as context:
        for name in PAGES:
            tab = ConsolePage(context, server.address)
            page = tab.open(name)
            assert page.locator("html").get_attribute("lang") == "vi"
            faults += [f"{name}: {each}" for each in tab.faults(WIDTHS[:1], THEMES[:1])]
            faults += [f"{name}: {each}" for each in (*tab.foreign, *tab.problems)]
            page.close()
    assert faults == []


def test_first_load_stays_in_its_budget(context: BrowserContext, server: KhoServer) -> None:
    """The start page takes 100 KB at most over the network, compressed; a second visit takes no file again."""
    tab = ConsolePage(context, server.address)
    answers: list[Response] = []
    tab.page.on("response", lambda response: answers.append(response))  # noqa: PLW0108 - no builtin
    tab.open()
    tab.page.wait_for_load_state("networkidle")
    sizes = {each.url: each.request.sizes()["responseBodySize"] for each in answers if "/console/" in each.url}
    print(f"first load: {sum(sizes.values())} bytes in {len(sizes)} files")
    assert len(sizes) > 10
    assert sum(sizes.values()) <= 100 * 1024
    tab.page.goto("about:blank")
    tab.open()
    tab.page.wait_for_load_state("networkidle")
    assert tab.page.evaluate(_TRANSFERRED) == []


def test_language_follows_the_browser_and_can_be_switched(browser: Browser, server: KhoServer) -> None:
    """A Vietnamese browser gets Vietnamese; the choice of another language is kept."""
    with browser.new_context(locale="vi-VN") as context:
        page = ConsolePage(context, server.address).open()
        expect(page.get_by_role("link", name="Kết nối")).to_be_visible()
        assert page.locator("html").get_attribute("lang") == "vi"
        page.get_by_label("Ngôn ngữ").select_option("en")
        expect(page.get_by_role("link", name="Connect", exact=True)).to_be_visible()
        page.reload()
        expect(page.get_by_role("link", name="Connect", exact=True)).to_be_visible()
        assert page.locator("html").get_attribute("lang") == "en"


def test_theme_is_chosen_and_kept(console: ConsolePage) -> None:
    """The dark theme overrides the system's light one, also after a reload."""
    page = console.open()
    console.set_theme("light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.get_by_label("Theme").select_option("dark")
    dark = page.evaluate(background)
    assert light != dark
    page.reload()
    page.wait_for_selector("main h1")
    assert page.evaluate(background) == dark


def test_menu_of_a_narrow_window_works_by_keyboard(console: ConsolePage) -> None:
    """At 360 pixels the pages are behind a button, which the keyboard opens; the focus goes to the new page."""
    console.set_width(360)
    page = console.open()
    console.tab_to("button", "Menu")
    page.keyboard.press("Enter")
    console.tab_to("link", "Connect")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Connect", exact=True)).to_be_visible()
    expect(page.locator("#main")).to_be_focused()
    expect(page.get_by_role("link", name="Try it")).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("link", name="Connect").click()
    expect(page.get_by_role("link", name="Try it")).to_be_hidden()


def test_tab_of_an_older_console_is_told_to_load_again(console: ConsolePage) -> None:
    """After an update the files of an open tab are gone: the page says so and offers to load again."""
    page = console.open()
    page.route("**/pages/try_it.js", lambda route: route.fulfill(status=404, body="{}"))
    page.get_by_role("link", name="Try it").click()
    expect(page.get_by_role("button", name="Load again")).to_be_visible()
    page.unroute("**/pages/try_it.js")
    page.get_by_role("button", name="Load again").click()
    expect(page.get_by_role("heading", name="Try it")).to_be_visible()
    console.problems.clear()  # the browser reports the answer of 404 as an error


def test_language_that_cannot_be_loaded_is_not_chosen(console: ConsolePage) -> None:
    """If the texts of a language do not come, a message says so and the page stays as it is."""
    page = console.open()
    page.route("**/strings/vi/*.js", lambda route: route.abort())
    page.get_by_label("Language").select_option("vi")
    expect(page.get_by_text("The language could not be loaded.")).to_be_visible()
    expect(page.get_by_label("Language")).to_have_value("en")


def test_page_that_fails_to_render_says_so(console: ConsolePage) -> None:
    """A page that fails shows the failure and a button. The other pages work."""
    answer = {"document_id": "broken", "parent_id": "root"}
    console.page.route("**/agent-data/get_document", lambda route: route.fulfill(json=answer))
    page = console.open("documents/broken")
    expect(page.get_by_role("heading", name="This page cannot be shown")).to_be_visible()
    expect(page.get_by_role("button", name="Load again")).to_be_visible()
    assert console.violations() == []
    page.get_by_role("link", name="Documents", exact=True).click()
    expect(page.get_by_role("heading", name="Documents", exact=True)).to_be_visible()


@pytest.mark.parametrize("name", ["experiences", "knowledge"])
def test_text_that_is_typed_while_a_search_appears_is_kept(console: ConsolePage, server: KhoServer, name: str) -> None:
    server.call("research-agent/manage_collections", action="create", collection_name=f"early-{name}")
    page = console.open("start")
    page.evaluate(_TYPE_AT_ONCE)
    page.get_by_role("link", name=name.title(), exact=True).first.click()
    until(lambda: page.evaluate("window.framesAfterTyping") == 3)
    expect(page.get_by_role("searchbox")).to_have_value("typed early")
