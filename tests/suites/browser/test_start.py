"""Start: the servers, the counts, the sample, and the checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.helpers.api_client import ApiClient
from tests.helpers.kho_server import KhoServer
from tests.suites.browser.console_page import ConsolePage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import BrowserContext


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiClient]:
    """Return a client of a server without any data."""
    with KhoServer(tmp_path / "data") as server:
        yield ApiClient(server, None)


@pytest.fixture
def empty(context: BrowserContext, api: ApiClient) -> Iterator[ConsolePage]:
    """Return a tab of the server without any data."""
    tab = ConsolePage(context, api.server.address)
    yield tab
    assert (tab.foreign, tab.problems) == ([], [])


def test_sample_is_loaded_by_keyboard_and_again_without_doubles(empty: ConsolePage) -> None:
    """A new user loads the sample by keyboard; loading it again adds nothing."""
    page = empty.open()
    expect(page.locator(".count strong").first).to_have_text("0")
    counts = []
    for _ in range(2):
        empty.tab_to("button", "Load a sample")
        page.keyboard.press("Enter")
        expect(page.get_by_text("Now look at:")).to_be_visible()
        expect(page.get_by_text("Three simulated devices", exact=True)).to_be_visible()
        empty.settle()
        counts.append(page.locator(".count strong").all_inner_texts())
    assert counts == [["1", "1", "1", "3"]] * 2
    assert empty.violations() == []


def test_sample_is_complete_again_after_a_part_of_it_was_deleted(empty: ConsolePage, api: ApiClient) -> None:
    """Loading the sample brings back deleted documents, and finishes a conversation that was begun."""
    page = empty.open()

    def load() -> None:
        page.get_by_role("button", name="Load a sample").click()
        expect(page.get_by_text("Now look at:")).to_be_visible()

    load()
    api.result("agent-data/delete_document", document_id="sample-greenhouse", recursive=True)
    transcript = {"conversation_id": "sample-greenhouse", "limit": 100}
    messages = api.result("memory-server/memory/list_messages", **transcript)["messages"][::-1]
    api.result("memory-server/memory/clear", conversation_id="sample-greenhouse")
    for each in messages[:3]:
        message = {"role": each["role"], "content": each["content"]}
        api.result("memory-server/memory/add_message", conversation_id="sample-greenhouse", **message)
    page.reload()
    load()
    for name in ("greenhouse", "watering", "tuoi-nuoc", "lamp"):
        api.result("agent-data/get_document", document_id=f"sample-{name}")
    stored = api.result("memory-server/memory/list_messages", **transcript)["messages"][::-1]
    assert [each["content"] for each in stored] == [each["content"] for each in messages]
    assert api.result("memory-server/memory/get_summary", conversation_id="sample-greenhouse")["summary"]


def test_admin_sees_what_is_wrong_with_the_installation(console: ConsolePage) -> None:
    """The checks of the installation are listed with their advice."""
    page = console.open()
    page.get_by_role("button", name="Check now").click()
    expect(page.get_by_text("Table memory")).to_be_visible()
    expect(page.get_by_text("None is configured: answers are extracts")).to_be_visible()
    assert console.violations() == []


def test_failing_server_hides_no_other(console: ConsolePage) -> None:
    """A server whose call fails is shown as failing; the counts of the others are there, and all after a retry."""
    error = {"error": {"code": "UNAVAILABLE", "message": "The table does not answer."}}
    console.page.route("**/device-server/devices/list", lambda route: route.fulfill(status=503, json=error))
    page = console.open()
    card = page.locator("li.card", has=page.get_by_role("heading", name="device-server"))
    expect(card.locator(".state.wrong")).to_have_text("a call failed (UNAVAILABLE)")
    expect(page.locator(".card .state.good")).to_have_count(4)
    expect(page.locator(".card.count")).to_have_count(3)
    expect(page.locator("main").get_by_role("alert")).to_contain_text("The table does not answer.")
    page.unroute("**/device-server/devices/list")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".card.count")).to_have_count(4)
    expect(page.locator(".card .state.good")).to_have_count(5)
