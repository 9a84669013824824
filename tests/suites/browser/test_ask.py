"""The page Ask: a question, the answer, and the passages that it cites."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from playwright.sync_api import expect

from tests.helpers.api_client import ApiClient
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.helpers.kho_server import KhoServer
    from tests.suites.browser.console_page import ConsolePage

QUESTION = "How often are ferns watered?"


@pytest.fixture(autouse=True)
def _waits() -> None:
    """Wait for conditions as long as everything else does."""
    expect.set_options(timeout=CEILING_SECONDS * 1000)


@pytest.fixture
def tag(server: KhoServer) -> str:
    """Return the tag of a document that answers the question, and that tries to run a script."""
    api, tag = ApiClient(server, None), f"ferns-{uuid4().hex[:8]}"
    hostile = "<script>window.hacked = 1</script> and [never](javascript:window.hacked=2)"
    body = f"Ferns are watered every morning, {hostile} at \u202enoon.\n"
    api.result(
        "agent-data/create_document",
        document_id=tag,
        parent_id="root",
        content={"body": body},
        metadata={"title": "Ferns", "tags": [tag]},
    )
    params = {"query": QUESTION, "filters": {"tags": [tag]}}
    until(lambda: api.result("agent-data/query_knowledge", **params)["context"])
    return tag


def test_main_task_by_mouse(console: ConsolePage, tag: str) -> None:
    """An answer's citation leads to its passage, and that to its document. A notice names what was missing."""
    page = console.open("ask")
    page.get_by_label("Question").fill(QUESTION)
    page.get_by_label("With all of these tags").fill(tag)
    page.get_by_label("Time budget").select_option("20000")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator(".answer")).to_contain_text("every morning")
    expect(
        page.get_by_text("The language model that writes answers: the operator has not configured it.")
    ).to_be_visible()
    page.locator(".answer a.citation").first.click()
    expect(page.get_by_role("listitem", name="Passage 1")).to_be_focused()
    assert page.evaluate("window.hacked") is None
    assert "\u202e" not in page.locator("main").inner_text()
    expect(page.locator(".passages")).to_contain_text("\ufffdnoon")
    assert page.locator(".answer a[href^=javascript], .passages a[href^=javascript], main script").count() == 0
    assert console.faults() == []
    page.get_by_role("link", name=tag).click()
    expect(page.get_by_role("heading", name="Ferns")).to_be_visible()
    page.go_back()
    expect(page.locator(".answer")).to_contain_text("every morning")


def test_main_task_by_keyboard(console: ConsolePage, tag: str) -> None:
    """A question is asked and its passage reached by keyboard alone."""
    page = console.open("ask")
    console.tab_to("textbox", "Question")
    page.keyboard.type(QUESTION)
    console.tab_to("textbox", "With all of these tags")
    page.keyboard.type(tag)
    page.keyboard.press("Enter")
    expect(page.locator(".answer")).to_contain_text("every morning")
    console.tab_to("link", "Passage 1")
    page.keyboard.press("Enter")
    expect(page.get_by_role("listitem", name="Passage 1")).to_be_focused()


def asked(console: ConsolePage, address: str) -> Page:
    """Open the page with a question, and press Ask."""
    page = console.open(address)
    page.get_by_role("button", name="Ask", exact=True).click()
    return page


@pytest.mark.parametrize("web", ["", "&web=1"])
def test_link_alone_asks_nothing(console: ConsolePage, web: str) -> None:
    """Anybody can make a link with a question: it fills the form in, and costs and sends nothing before a click."""
    calls: list[str] = []
    console.page.on("request", lambda request: calls.append(request.url) if "query_knowledge" in request.url else None)
    page = console.open(f"ask?q=ferns&tags=garden{web}")
    expect(page.get_by_label("Question")).to_have_value("ferns")
    expect(page.get_by_text("Nothing has been sent yet")).to_be_visible()
    assert page.get_by_label("Search the web too").is_checked() == bool(web)
    page.evaluate("address => { location.hash = address }", f"#/ask?q=moss{web}")
    expect(page.get_by_label("Question")).to_have_value("moss")
    page.reload()
    expect(page.get_by_label("Question")).to_have_value("moss")
    console.settle()
    assert calls == []
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator(".answer, .empty").first).to_be_visible()
    expect(page.get_by_text("Nothing has been sent yet")).to_have_count(0)
    assert len(calls) == 1


def test_a_question_without_an_answer(console: ConsolePage) -> None:
    """A question that no document answers gets advice instead of an empty page."""
    page = asked(console, f"ask?q=ferns&tags=none-{uuid4().hex}")
    expect(page.get_by_text("No document is relevant to this question.")).to_be_visible()


def test_the_same_question_is_asked_again(console: ConsolePage) -> None:
    page = asked(console, "ask?q=ferns")
    console.settle()
    with page.expect_response("**/query_knowledge"):
        page.get_by_role("button", name="Ask", exact=True).click()


def test_a_refused_question_names_the_field(console: ConsolePage) -> None:
    """A question that the server refuses says which field is wrong."""
    page = asked(console, f"ask?q=ferns&tags={'x' * 300}")
    expect(page.get_by_role("alert")).to_contain_text("filters.tags")


def test_in_vietnamese(console: ConsolePage) -> None:
    """The page speaks the chosen language, and so do the reasons why an answer is not complete."""
    page = asked(console, f"ask?q=ferns&tags=none-{uuid4().hex}")
    page.get_by_label("Language").select_option("vi")
    expect(page.get_by_role("heading", name="Hỏi")).to_be_visible()
    expect(page.get_by_text("Không có tài liệu nào liên quan")).to_be_visible()
