"""The page Conversations: the list, transcripts, summaries, and what a model gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from playwright.sync_api import expect

from tests.helpers.api_client import ApiClient
from tests.helpers.wait import CEILING_SECONDS, until
from tests.suites.browser.held_calls import HeldCalls

if TYPE_CHECKING:
    from playwright.sync_api import Route

    from tests.helpers.kho_server import KhoServer
    from tests.suites.browser.console_page import ConsolePage

MEMORY = "memory-server/memory"


@pytest.fixture(autouse=True)
def _waits() -> None:
    """Wait for conditions as long as everything else does."""
    expect.set_options(timeout=CEILING_SECONDS * 1000)


@pytest.fixture
def api(server: KhoServer) -> ApiClient:
    return ApiClient(server, None)


@pytest.fixture
def chat(api: ApiClient) -> str:
    """Return a conversation of 12 messages, of which the summary covers four and a model gets six."""
    id_ = f"chat-{uuid4().hex[:8]}"
    add(api, id_, *(f"message {number}" for number in range(1, 5)))
    api.result(f"{MEMORY}/set_summary", conversation_id=id_, summary="About\n  ferns & <b>water</b>.")
    add(api, id_, *(f"message {number}" for number in range(5, 13)))
    return id_


def add(api: ApiClient, id_: str, *contents: str) -> None:
    for content in contents:
        api.result(f"{MEMORY}/add_message", conversation_id=id_, role="user", content=content)


def read_context(api: ApiClient, id_: str) -> Any:
    return api.result(f"{MEMORY}/get_context", conversation_id=id_)["messages"]


def test_main_task_by_mouse(console: ConsolePage, api: ApiClient, chat: str) -> None:
    """A conversation is found; its transcript marks what the model gets, and the panel shows exactly that."""
    page = console.open("conversations")
    page.get_by_label("Id begins with").fill(chat)
    page.get_by_role("button", name="Find").click()
    page.get_by_role("link", name=chat).click()
    places = page.locator(".message .place")
    expect(places).to_have_text(
        ["in the summary"] * 4 + ["the model no longer sees it"] * 2 + ["the model gets it"] * 6
    )
    expect(page.locator(".given pre")).to_have_text([f"user\n{each['content']}" for each in read_context(api, chat)])
    expect(page.locator(".context > pre")).to_have_text("get_summary\nAbout\n  ferns & <b>water</b>.")
    page.get_by_label("Messages at most").fill("2")
    expect(page.locator(".given pre")).to_have_count(2)
    expect(page.locator(".message.given")).to_have_count(2)
    add(api, chat, "message 13")
    expect(page.locator(".message").last).to_contain_text("message 13")
    expect(page.locator(".given pre").last).to_contain_text("message 13")
    assert console.faults() == []


def test_main_task_by_keyboard(console: ConsolePage, api: ApiClient, chat: str) -> None:
    """A message is added, the summary stored, and the conversation deleted by keyboard alone."""
    page = console.open(f"conversations/{chat}")
    console.tab_to("textbox", "Add a message")
    page.keyboard.type("typed")
    console.tab_to("button", "Add")
    page.keyboard.press("Enter")
    expect(page.locator(".message").last).to_contain_text("typed")
    console.tab_to("button", "Edit the summary")
    page.keyboard.press("Enter")
    console.tab_to("textbox", "Summary")
    page.keyboard.press("Control+A")
    page.keyboard.type("A new summary")
    console.tab_to("button", "Save")
    page.keyboard.press("Enter")
    expect(page.get_by_text("It covers the messages up to no. 13")).to_be_visible()
    until(lambda: api.result(f"{MEMORY}/get_summary", conversation_id=chat)["summary"] == "A new summary")
    console.tab_to("button", "Delete the conversation")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    console.tab_to("button", "Delete the conversation")
    page.keyboard.press("Enter")
    until(lambda: api.direct(f"{MEMORY}/get_context", conversation_id=chat)[0] == 404)


def test_a_long_transcript_begins_at_its_end(console: ConsolePage, api: ApiClient) -> None:
    """Of a long conversation the newest messages are shown, and older ones on request."""
    id_ = f"long-{uuid4().hex[:8]}"
    add(api, id_, *(f"message {number}" for number in range(1, 121)))
    page = console.open(f"conversations/{id_}")
    expect(page.locator(".message")).to_have_count(50)
    expect(page.locator(".message").last).to_contain_text("message 120")
    expect(page.locator(".message").last).to_be_in_viewport()
    for count in (100, 120):
        page.get_by_role("button", name="Older messages").click()
        expect(page.locator(".message")).to_have_count(count)
    expect(page.get_by_role("button", name="Older messages")).to_have_count(0)
    expect(page.locator(".message").first).to_contain_text("message 1")


def test_transcript_follows_a_message_that_grows(console: ConsolePage, api: ApiClient, chat: str) -> None:
    """The end stays in view while texts are rendered, until the reader scrolls up."""
    page = console.open(f"conversations/{chat}")
    last = page.locator(".message").last
    expect(last).to_be_in_viewport()
    grow = """message => {
      message.style.paddingBottom = `${parseInt(message.style.paddingBottom || 0) + 2000}px`;
      message.closest(".messages-box").dispatchEvent(new Event("scroll"));
    }"""
    rest = """message => {
      const { scrollHeight, scrollTop, clientHeight } = message.closest(".messages-box");
      return scrollHeight - scrollTop - clientHeight;
    }"""
    scroll_up = """message => {
      message.closest(".messages-box").scrollTo(0, 0);
      return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))); // after its event
    }"""
    last.evaluate(grow)
    until(lambda: last.evaluate(rest) < 1)
    last.evaluate(scroll_up)
    add(api, chat, "a later one")
    expect(page.locator(".message").last).to_contain_text("a later one")
    expect(page.locator(".message").last).not_to_be_in_viewport()


def test_cleared_messages_disappear(console: ConsolePage, api: ApiClient, chat: str) -> None:
    """A conversation that another clears is empty on the page, too."""
    page = console.open(f"conversations/{chat}")
    expect(page.locator(".message")).to_have_count(12)
    api.result(f"{MEMORY}/clear", conversation_id=chat)
    expect(page.locator(".message")).to_have_count(0)
    add(api, chat, "after")
    expect(page.locator(".message")).to_have_count(1)
    expect(page.locator(".message.given")).to_have_count(1)


def test_links_to_headings_stay_on_the_page(console: ConsolePage, api: ApiClient) -> None:
    """A link to a heading scrolls to it within its text. One whose encoding is malformed does nothing."""
    id_ = f"links-{uuid4().hex[:8]}"
    add(api, id_, "## The start" + "\n\nline" * 100 + "\n\n[up](#the-start) [bad](#%zz)")
    page = console.open(f"conversations/{id_}")
    expect(page.get_by_role("link", name="up")).to_be_in_viewport()  # the end of the newest message is
    expect(page.get_by_role("heading", name="The start")).not_to_be_in_viewport()
    for name in ("bad", "up"):
        page.get_by_role("link", name=name).click()
    expect(page.get_by_role("heading", name="The start")).to_be_in_viewport()
    assert page.url.endswith(f"#/conversations/{id_}")


def test_messages_appear_in_any_order(console: ConsolePage, api: ApiClient, chat: str) -> None:
    """A message whose writer is later than the one of the next number is shown in its place."""
    late = {"number": 11}

    def leave_out(route: Route) -> None:
        response = route.fetch()
        page = response.json()
        page["messages"] = [each for each in page["messages"] if each["number"] != late.get("number")]
        route.fulfill(response=response, json=page)

    console.page.route("**/list_messages", leave_out)
    page = console.open(f"conversations/{chat}")
    expect(page.locator(".message")).to_have_count(11)
    late.clear()
    expect(page.locator(".message")).to_have_count(12)
    expect(page.locator(".message").nth(10)).to_contain_text("message 11")


def test_a_conversation_that_another_deletes_is_said_to_be_gone(
    console: ConsolePage, api: ApiClient, chat: str
) -> None:
    page = console.open(f"conversations/{chat}")
    expect(page.locator(".message")).to_have_count(12)
    api.result(f"{MEMORY}/delete", conversation_id=chat)
    expect(page.get_by_text("This conversation was deleted.")).to_be_visible()


def test_text_that_is_typed_while_a_message_is_sent_stays(console: ConsolePage, api: ApiClient, chat: str) -> None:
    page = console.open(f"conversations/{chat}")
    held = HeldCalls(page, "add_message")
    field = page.get_by_label("Add a message")
    field.fill("sent")
    page.get_by_role("button", name="Add", exact=True).click()
    until(lambda: held.waiting)
    field.press("Control+End")
    field.press_sequentially(" and more")
    held.release()
    expect(page.locator(".message").last).to_contain_text("sent")
    expect(field).to_have_value(" and more")


def test_a_button_leads_to_what_the_model_gets_in_a_narrow_window(console: ConsolePage, chat: str) -> None:
    page = console.open(f"conversations/{chat}")
    console.set_width(390)
    expect(page.locator(".message")).to_have_count(12)
    expect(page.locator("[aria-busy=true]")).to_have_count(0)  # what is read later would push the heading away
    page.get_by_role("button", name="What the model gets").click()
    heading = page.get_by_role("heading", name="What the model gets")
    expect(heading).to_be_focused()
    expect(heading).to_be_in_viewport()


def test_unsent_text_of_a_deleted_conversation_is_removed(console: ConsolePage, chat: str) -> None:
    page = console.open(f"conversations/{chat}")
    page.get_by_label("Add a message").fill("not sent")
    page.get_by_role("button", name="Delete the conversation").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete the conversation").click()
    expect(page.get_by_role("heading", name=chat)).to_have_count(0)
    assert "not sent" not in page.evaluate("JSON.stringify(localStorage)")


def test_unsent_text_survives_a_reload(console: ConsolePage, api: ApiClient, chat: str) -> None:
    """A message and a summary that were typed are there after a reload, until they are stored."""
    page = console.open(f"conversations/{chat}")
    page.get_by_label("Add a message").fill("not sent")
    page.get_by_role("button", name="Edit the summary").click()
    page.get_by_role("textbox", name="Summary").fill("not stored")
    page.reload()
    expect(page.get_by_label("Add a message")).to_have_value("not sent")
    expect(page.get_by_role("textbox", name="Summary")).to_have_value("not stored")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".message").last).to_contain_text("not sent")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("button", name="Edit the summary")).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="Edit the summary")).to_be_visible()
    expect(page.get_by_label("Add a message")).to_have_value("")


def test_hostile_messages_are_harmless(console: ConsolePage, api: ApiClient) -> None:
    """Scripts and other sites' images in messages and summaries neither run nor load."""
    id_ = f"hostile-{uuid4().hex[:8]}"
    hostile = '<script>window.hacked=1</script><svg onload="window.hacked=2"></svg> [x](javascript:window.hacked=3) ![i](https://other.example/i.png)'
    add(api, id_, hostile, "\u0007\u202e control")
    api.result(f"{MEMORY}/set_summary", conversation_id=id_, summary=f"{hostile}\u202e")
    page = console.open(f"conversations/{id_}")
    expect(page.locator(".message")).to_have_count(2)
    expect(page.locator(".given pre").first).to_contain_text("<script>window.hacked=1</script>")
    assert page.locator("main script, main svg, main img, main a[href^=javascript]").count() == 0
    assert page.evaluate("window.hacked") is None
    expect(page.locator(".message").last).to_contain_text("\ufffd\ufffd control")
    assert not {"\u202e", "\u0007"} & set(page.locator("body").inner_text())
