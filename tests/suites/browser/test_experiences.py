"""The page Experiences: search, read, submit, moderate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect

from tests.helpers.api_client import ApiClient, make_key
from tests.helpers.wait import until
from tests.suites.browser.console_page import ConsolePage

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

    from tests.helpers.kho_server import KhoServer

HOSTILE = (
    "<script>document.title='hit'</script><img src=x onerror=\"document.title='hit'\">[x](javascript:alert(1))\u202e"
)


def submit(server: KhoServer, title: str, **more: str) -> str:
    texts = {"problem_description": "It is stale.", "solution": "Read it **again**."} | more
    id_: str = server.call("recall-kit/submit_experience", title=title, **texts)["data"]["id"]
    return id_


def test_experience_is_submitted_found_and_moderated_by_mouse(console: ConsolePage) -> None:
    page = console.open("experiences")
    page.get_by_role("link", name="Share an experience").click()
    page.get_by_label("Title").fill("Gadget number 8812 hums at night")
    page.get_by_label("Problem").fill("It hums.")
    page.get_by_label("Solution").fill("Turn it around.")
    page.get_by_role("button", name="Publish").click()
    page.get_by_role("heading", name="Gadget number 8812").wait_for()
    page.get_by_role("link", name="Experiences").last.click()
    page.get_by_role("searchbox", name="Problem").fill("gadget hums at night")
    console.search_until_found("Gadget number 8812")
    page.get_by_role("link", name="Gadget number 8812").click()
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Solution").fill("Switch it off.")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Switch it off.").wait_for()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Restore it").click()
    page.get_by_text("Switch it off.").wait_for()


def test_search_that_is_repeated_finds_what_was_added_meanwhile(console: ConsolePage, server: KhoServer) -> None:
    page = console.open("experiences?q=contraption%205521%20rattles")
    page.get_by_role("searchbox", name="Problem").wait_for()
    console.settle()
    submit(server, "Contraption 5521 rattles")
    console.search_until_found("Contraption 5521 rattles")


def test_experience_is_submitted_by_keyboard(console: ConsolePage) -> None:
    page = console.open("experiences/new")
    for name, text in (
        ("Title (required)", "Typed title"),
        ("Problem (required)", "It fails"),
        ("Solution (required)", "Mend it"),
    ):
        console.tab_to("textbox", name)
        page.keyboard.type(text)
    console.tab_to("button", "Publish")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Typed title").wait_for()


def test_experience_is_found_and_read_by_keyboard(console: ConsolePage, server: KhoServer) -> None:
    submit(server, "Typed search finds widget 4417", solution="Read it **by keyboard**.")
    page = console.open("experiences")
    console.tab_to("searchbox", "Problem")
    page.keyboard.type("typed search widget 4417")

    def is_found() -> bool:
        page.keyboard.press("Enter")
        console.settle()
        results: int = page.get_by_role("link", name="Typed search finds widget 4417").count()
        return results > 0

    until(is_found)
    console.tab_to("link", "Typed search finds widget 4417")
    page.keyboard.press("Enter")
    page.get_by_text("by keyboard").wait_for()


def test_old_edits_are_named_and_can_be_discarded(console: ConsolePage, server: KhoServer) -> None:
    """A notice names typed text that was not sent when the form opens again; one button takes the stored text."""
    id_ = submit(server, "An experience with old edits")
    page = console.open(f"experiences/{id_}/edit")
    notice = page.get_by_text("What you typed before and did not send is back.")
    page.get_by_label("Solution").fill("old edits")
    assert notice.count() == 0
    server.call("recall-kit/update_experience", id=id_, solution="newer text")
    page.reload()
    notice.wait_for()
    expect(page.get_by_label("Solution")).to_have_value("old edits")
    page.get_by_role("button", name="Discard it").click()
    expect(page.get_by_label("Solution")).to_have_value("newer text")
    expect(notice).to_have_count(0)
    page.reload()
    expect(page.get_by_label("Solution")).to_have_value("newer text")


def test_refusal_is_shown_at_its_field_and_nothing_typed_is_lost(console: ConsolePage) -> None:
    """A refused field is marked and has the focus. What was typed is there after the tab was closed."""
    page = console.open("experiences/new")
    page.get_by_label("Title").fill("A title")
    page.get_by_label("Problem").fill("Mail to someone.private@gmail.com fails")
    page.get_by_role("button", name="Publish").click()
    page.locator("[aria-invalid=true]").first.wait_for()
    marked = page.locator("[aria-invalid=true]")
    assert marked.count() == 1 or "required" in page.locator(".problem").all_inner_texts()[-1]
    page.get_by_label("Solution").fill("Use another")
    page.get_by_role("button", name="Publish").click()
    problem = page.get_by_label("Problem")
    problem.and_(page.locator("[aria-invalid=true]")).wait_for()
    expect(problem).to_be_focused()
    assert "gmail" not in page.locator(".problem").inner_text()
    page.reload()
    page.wait_for_selector("main h1")
    assert page.get_by_label("Solution").input_value() == "Use another"


def test_moderation_is_offered_to_moderators_alone(context: BrowserContext, guarded: KhoServer) -> None:
    """A reader, an admin of another tenant, and someone without a key see no action that they may not do."""
    keys = {
        name: make_key(guarded.data, *name)["key"]
        for name in (("local", "reader"), ("acme", "admin"), ("local", "admin"))
    }
    client = ApiClient(guarded, keys["local", "admin"])
    texts = {"title": "A moderated title", "problem_description": "It is stale.", "solution": "Read it again."}
    id_ = client.result("recall-kit/submit_experience", **texts)["data"]["id"]
    tab = ConsolePage(context, guarded.address)
    page = tab.open(f"experiences/{id_}")
    page.get_by_text("Read it again.").wait_for()
    tab.settle()
    assert page.get_by_role("dialog").count() == page.get_by_role("link", name="Edit").count() == 0
    for name, key in keys.items():
        page = tab.open("start")
        page.reload()
        page.get_by_role("dialog").get_by_label("Key", exact=True).fill(key)
        page.keyboard.press("Enter")
        page.locator(".count").first.wait_for()
        with page.expect_response("**/tool-server/system/caller") as described:
            page.evaluate("address => { location.hash = address }", f"#/experiences/{id_}")
        page.get_by_text("Read it again.").wait_for()
        assert described.value.json()["is_moderator"] is (name == ("local", "admin"))
        if name == ("local", "admin"):
            page.get_by_role("button", name="Delete").wait_for()
        else:
            tab.settle()
            assert page.get_by_role("button", name="Delete").count() == 0
    assert (tab.foreign, tab.problems) == ([], [])


def test_hostile_experience_does_nothing(console: ConsolePage, server: KhoServer) -> None:
    id_ = submit(server, f"Hostile {HOSTILE}", problem_description=HOSTILE, context=HOSTILE)
    page = console.open(f"experiences/{id_}")
    page.get_by_text("Root cause").or_(page.get_by_role("heading", name="Problem")).first.wait_for()
    page.locator(".markdown").get_by_text("<script>").first.wait_for()
    assert page.locator("main script, main img, a[href^=javascript]").count() == 0
    assert page.title() == "Experiences · Kho"


def test_pages_are_accessible_with_content(console: ConsolePage, server: KhoServer) -> None:
    id_ = submit(server, "Accessible " + "w" * 150, context="code " * 100)
    for address in ("experiences?q=accessible", f"experiences/{id_}", f"experiences/{id_}/edit", "experiences/new"):
        page = console.open(address)
        page.locator("main .panel, main form.fields").first.wait_for()
        assert console.faults() == [], address
