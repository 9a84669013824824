"""Connect: settings that clients understand, copied by one click."""

from __future__ import annotations

import base64
import json
import tomllib
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from playwright.sync_api import expect

from tests.suites.browser.console_page import ConsolePage

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

    from tests.helpers.kho_server import KhoServer


def snippet(page: Page, name: str) -> str:
    """Return a snippet by its accessible name."""
    text: str = page.get_by_label(name, exact=True).inner_text()
    return text


def test_settings_name_this_server_for_every_client(console: ConsolePage) -> None:
    """Each client's settings parse as that client reads them, and name this server's address with the toolset."""
    page = console.open("connect")
    page.get_by_role("combobox", name="Tools").select_option("memory")
    url = f"{console.address}/mcp/memory"
    assert json.loads(snippet(page, "Cursor: ~/.cursor/mcp.json")) == {"mcpServers": {"kho": {"url": url}}}
    of_code = json.loads(snippet(page, "VS Code: .vscode/mcp.json"))
    assert of_code == {"servers": {"kho": {"type": "http", "url": url}}}
    command = snippet(page, "Claude Code: In a terminal")
    assert command == f"claude mcp add --transport http kho {url}"
    codex = tomllib.loads(snippet(page, "Codex: ~/.codex/config.toml"))
    assert codex == {"mcp_servers": {"kho": {"url": url}}}
    for cloud in ("claude.ai", "ChatGPT"):
        assert snippet(page, f"{cloud}: Address of the server") == url
    expect(page.get_by_text("cannot reach this address")).to_have_count(2)


def test_install_links_carry_the_settings(console: ConsolePage) -> None:
    """The links of Cursor and VS Code contain the name and the address, encoded as the two read them."""
    page = console.open("connect")
    cursor = parse_qs(urlsplit(page.get_by_role("link", name="Add to Cursor").get_attribute("href")).query)
    assert cursor["name"] == ["kho"]
    assert json.loads(base64.b64decode(cursor["config"][0])) == {"url": f"{console.address}/mcp"}
    code: Any = parse_qs(urlsplit(page.get_by_role("link", name="Add to VS Code").get_attribute("href")).query)
    settings = json.loads(unquote(code["url"][0].removeprefix("vscode:mcp/install?")))
    assert settings == {"name": "kho", "type": "http", "url": f"{console.address}/mcp"}


def test_a_button_leads_to_a_client_in_a_narrow_window(console: ConsolePage) -> None:
    page = console.open("connect")
    console.set_width(390)
    page.get_by_role("button", name="Claude Code", exact=True).click()
    heading = page.get_by_role("heading", name="Claude Code")
    expect(heading).to_be_focused()
    expect(heading).to_be_in_viewport()
    assert console.violations() == []


def test_tools_are_chosen_by_keyboard(console: ConsolePage) -> None:
    page = console.open("connect")
    console.tab_to("combobox", "Tools")
    page.keyboard.type("Conversations")
    command = page.get_by_label("Claude Code: In a terminal", exact=True)
    expect(command).to_have_text(f"claude mcp add --transport http kho {console.address}/mcp/memory")


def test_settings_have_a_key_where_nothing_else_signs_in(context: BrowserContext, guarded: KhoServer) -> None:
    """A server that requires credentials and issues no tokens gets a key from every client, and says how to make it."""
    tab = ConsolePage(context, guarded.address)
    tab.page.route("**/.well-known/oauth-authorization-server", lambda route: route.fulfill(status=404))
    page = tab.open("connect")
    expect(page.get_by_role("combobox", name="Who calls")).to_have_value("key")
    expect(page.get_by_text("kho keys create --tenant")).to_be_visible()
    for name in ("Cursor: ~/.cursor/mcp.json", "Claude Code: In a terminal", "Codex: ~/.codex/config.toml"):
        assert "KHO_KEY" in snippet(page, name)
    assert "kho-key" in snippet(page, "VS Code: .vscode/mcp.json")
    assert (tab.foreign, tab.problems) == ([], [])


def test_snippet_is_copied_by_click_and_by_keyboard(console: ConsolePage, context: BrowserContext) -> None:
    """One click, or Enter, puts exactly the snippet on the clipboard and says so."""
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = console.open("connect")
    codex = page.get_by_role("region", name="Codex")
    codex.get_by_role("button", name="Copy").click()
    expect(page.get_by_text("Copied to the clipboard.")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == snippet(page, "Codex: ~/.codex/config.toml")
    command = page.get_by_label("Claude Code: In a terminal", exact=True)
    for _ in range(100):
        page.keyboard.press("Tab")
        if command.evaluate("each => each === document.activeElement"):
            break
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Claude Code").get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == snippet(page, "Claude Code: In a terminal")
