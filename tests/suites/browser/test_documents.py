"""The page Documents: tree, editor, conflicts, history, deletion and the bin."""

from __future__ import annotations

import json
import random
import re
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from playwright.sync_api import expect

from tests.helpers.api_client import ApiClient
from tests.helpers.store_seed import seed_children
from tests.helpers.wait import CEILING_SECONDS, until
from tests.suites.browser.console_page import ConsolePage
from tests.suites.browser.held_calls import HeldCalls

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page, Route

    from tests.helpers.kho_server import KhoServer

AGENT = "agent-data"
HOSTILE = """# Hostile

<script>window.hacked = 1</script>
<svg onload="window.hacked = 2"><a href="javascript:window.hacked=3">x</a></svg>
<img src="https://other.example/tracked.png" onerror="window.hacked = 4">
<iframe src="https://other.example/"></iframe><style>body { display: none }</style>
<form action="https://other.example/"><button formaction="javascript:window.hacked=5">send</button></form>

[script](javascript:window.hacked=6) [data](data:text/html,<script>window.hacked=7</script>) [ok](https://kho.example/)

![drawing](data:image/svg+xml;base64,PHN2Zy8+) ![page](data:text/html,x)

![tracked](https://other.example/pixel.png) <a href="jAvAsCrIpT:window.hacked=8">mixed</a>
"""


@pytest.fixture(autouse=True)
def _waits() -> None:
    """Wait for conditions as long as everything else does."""
    expect.set_options(timeout=CEILING_SECONDS * 1000)


@pytest.fixture
def api(server: KhoServer) -> ApiClient:
    return ApiClient(server, None)


@pytest.fixture
def folder(api: ApiClient) -> str:
    """Return the id of a new document at the top of the tree, for what a test puts below it."""
    id_ = f"folder-{uuid4().hex[:8]}"
    make(api, id_, "root")
    return id_


def make(api: ApiClient, id_: str, parent: str, body: str = "x", **metadata: Any) -> None:
    content = {"mime_type": "text/markdown", "body": body}
    api.result(f"{AGENT}/create_document", document_id=id_, parent_id=parent, content=content, metadata=metadata)


def read(api: ApiClient, id_: str) -> Any:
    return api.result(f"{AGENT}/get_document", document_id=id_)


def children(api: ApiClient, id_: str) -> list[str]:
    return [each["document_id"] for each in api.result(f"{AGENT}/list_children", parent_id=id_)["children"]]


def row(page: Page, id_: str) -> Locator:
    """Return the row of a document in the tree."""
    return page.locator(f'[role=treeitem][data-id="{id_}"]')


def differences(page: Page, before: list[str], after: list[str]) -> Any:
    """Return what the page's own module finds different in two lists of lines."""
    source = page.locator("script[type=module]").get_attribute("src")
    assert source
    address = json.dumps(f"/console/{source.replace('app.js', 'documents/diff.js').removeprefix('./')}")
    pair = json.dumps(["\n".join(before), "\n".join(after)])
    return page.evaluate(f"import({address}).then(({{diffLines}}) => diffLines(...{pair}))")


def test_main_task_by_mouse(console: ConsolePage, api: ApiClient, folder: str) -> None:
    """A document is created, edited, compared with what it was, deleted and restored with the mouse."""
    page = console.open(f"documents/{folder}")
    page.get_by_role("link", name="New below it").click()
    page.get_by_label("Title").fill("Sổ tay vận hành")
    page.get_by_label("Tags").fill("ops, vận hành")
    page.get_by_label("Id (optional)").fill(f"{folder}-note")
    page.get_by_label("Text", exact=True).fill("# One\n\nWater **daily**.\n")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Sổ tay vận hành")).to_be_visible()
    expect(page.locator("article strong")).to_have_text("daily")
    expect(row(page, f"{folder}-note")).to_have_attribute("aria-selected", "true")
    assert read(api, f"{folder}-note")["metadata"] == {"title": "Sổ tay vận hành", "tags": ["ops", "vận hành"]}

    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_label("Text", exact=True).fill("# One\n\nWater **weekly**.\n")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("article strong")).to_have_text("weekly")
    page.get_by_role("button", name="History").click()
    page.get_by_role("button", name="Show revision 1").click()
    expect(page.get_by_role("region", name="What revision 1 said").locator("strong")).to_have_text("daily")
    page.get_by_role("button", name="What revision 2 changed").click()
    expect(page.locator(".diff del")).to_contain_text("Water **daily**.")
    expect(page.locator(".diff ins")).to_contain_text("Water **weekly**.")

    page.get_by_role("button", name="Delete").click()
    page.get_by_label("Reason (optional)").fill("no longer true")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("This document was deleted.")).to_be_visible()
    expect(row(page, f"{folder}-note")).to_have_count(0)
    with page.expect_response("**/list_children"):
        page.get_by_role("button", name="Restore").click()
    expect(page.get_by_role("checkbox")).to_have_count(0)  # nothing was deleted together with it
    page.get_by_role("dialog").get_by_role("button", name="Restore").click()
    expect(page.locator("article strong")).to_have_text("weekly")
    assert read(api, f"{folder}-note")["revision"] == 4


def test_chosen_revision_comes_into_view(console: ConsolePage, api: ApiClient, folder: str) -> None:
    """In a long history, the text of a chosen revision and a comparison get the focus."""
    id_ = f"{folder}-often"
    make(api, id_, folder)
    for number in range(12):
        content = {"content": {"body": f"text {number}"}}
        api.result(f"{AGENT}/update_document", document_id=id_, patch=content)
    page = console.open(f"documents/{id_}?view=history")
    for button, heading in (("Show revision 1", "What revision 1 said"), ("What revision 2 changed", "Revision 1 → 2")):
        page.get_by_role("button", name=button, exact=True).click()
        shown = page.get_by_role("heading", name=heading)
        expect(shown).to_be_focused()
        expect(shown).to_be_in_viewport()


def test_bin_has_what_was_deleted_anywhere(console: ConsolePage, api: ApiClient, folder: str) -> None:
    """The bin lists documents of any depth, the last deleted first, and restores by keyboard what went together."""
    make(api, f"{folder}-shelf", folder, title=f"{folder} shelf {'x' * 120}")
    make(api, f"{folder}-book", f"{folder}-shelf")
    make(api, f"{folder}-note", folder, title=f"{folder} note")
    for name in ("note", "shelf"):
        api.result(f"{AGENT}/delete_document", document_id=f"{folder}-{name}", recursive=True)
    page = console.open("documents")
    console.tab_to("link", "Bin")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Bin").wait_for()
    listed = page.get_by_role("list", name="Bin").get_by_role("link")
    listed.first.wait_for()
    names = [each for each in listed.all_inner_texts() if folder in each]
    assert [each.removeprefix(folder)[:6] for each in names] == [" shelf", " note"]
    assert console.faults() == []
    console.tab_to("button", f"Restore {names[0]}")
    page.keyboard.press("Enter")
    expect(page.get_by_role("checkbox")).to_be_checked()
    console.tab_to("button", "Restore")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name=names[0])).to_have_count(0)
    assert read(api, f"{folder}-book")["content"]["body"] == "x"


def test_main_task_by_keyboard(console: ConsolePage, api: ApiClient, folder: str) -> None:
    """A document is found in the tree, edited, moved, and scheduled for deletion by keyboard alone."""
    for name in ("a", "b", "c"):
        make(api, f"{folder}-{name}", folder, title=f"{folder} {name}")
    page = console.open(f"documents/{folder}")
    row(page, folder).wait_for()
    console.tab_to("treeitem", folder)
    for key in ("ArrowRight", "ArrowDown", "Alt+ArrowDown"):
        page.keyboard.press(key)
        if key == "ArrowRight":
            row(page, f"{folder}-c").wait_for()
        if key == "ArrowDown":
            expect(row(page, f"{folder}-a")).to_be_focused()
    until(lambda: children(api, folder) == [f"{folder}-{name}" for name in "bac"])
    expect(row(page, f"{folder}-a")).to_be_focused()
    page.keyboard.press("Alt+ArrowRight")
    until(lambda: children(api, f"{folder}-b") == [f"{folder}-a"])
    expect(row(page, f"{folder}-a")).to_have_attribute("aria-level", "3")
    expect(row(page, f"{folder}-a")).to_be_focused()
    page.keyboard.press("Alt+ArrowLeft")
    until(lambda: children(api, folder) == [f"{folder}-{name}" for name in "bac"])
    expect(row(page, f"{folder}-a")).to_be_focused()
    page.keyboard.press("Alt+ArrowUp")
    until(lambda: children(api, folder) == [f"{folder}-{name}" for name in "abc"])
    expect(row(page, f"{folder}-a")).to_be_focused()

    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=f"{folder} a")).to_be_visible()
    console.tab_to("button", "Edit")
    page.keyboard.press("Enter")
    console.tab_to("textbox", "Text")
    page.keyboard.press("Control+End")
    page.keyboard.type(" and y")
    page.keyboard.press("Control+s")
    expect(page.locator("article")).to_contain_text("x and y")
    console.tab_to("button", "Delete")
    page.keyboard.press("Enter")
    console.tab_to("radio", "Now")
    page.keyboard.press("ArrowDown")
    console.tab_to("button", "Delete")
    page.keyboard.press("Enter")
    expect(page.get_by_text("It will be deleted on")).to_have_count(2)  # on the page, and as a message
    assert read(api, f"{folder}-a")["delete_at"]
    console.tab_to("button", "Cancel the deletion")
    page.keyboard.press("Enter")
    until(lambda: "delete_at" not in read(api, f"{folder}-a"))


def test_documents_are_moved_by_drag(console: ConsolePage, api: ApiClient, folder: str) -> None:
    """Dropping a document on another puts it below it; dropping it on the edge puts it before or after it."""
    for name in ("a", "b", "c"):
        make(api, f"{folder}-{name}", folder)
    page = console.open(f"documents/{folder}-c")
    row(page, f"{folder}-c").wait_for()
    row(page, f"{folder}-c").drag_to(row(page, f"{folder}-a"), target_position={"x": 60, "y": 3})
    until(lambda: children(api, folder) == [f"{folder}-{name}" for name in "cab"])
    expect(row(page, f"{folder}-c")).to_have_attribute("aria-posinset", "1")  # the rows have moved too
    row(page, f"{folder}-b").drag_to(row(page, f"{folder}-a"), target_position={"x": 60, "y": 18})
    until(lambda: children(api, f"{folder}-a") == [f"{folder}-b"])
    expect(row(page, f"{folder}-b")).to_have_attribute("aria-level", "3")


def test_a_move_waits_for_the_one_before_it(console: ConsolePage, api: ApiClient, folder: str) -> None:
    for name in ("a", "b", "c"):
        make(api, f"{folder}-{name}", folder)
    page = console.open(f"documents/{folder}-a")
    held = HeldCalls(page, "move_document")
    row(page, f"{folder}-a").focus()
    page.keyboard.press("Alt+ArrowDown")
    until(lambda: held.waiting)
    page.keyboard.press("Alt+ArrowDown")
    held.release()
    held.release()
    until(lambda: children(api, folder) == [f"{folder}-{name}" for name in "bca"])
    expect(row(page, f"{folder}-a")).to_be_focused()


def test_a_move_into_itself_is_refused_with_guidance(console: ConsolePage, api: ApiClient, folder: str) -> None:
    """A refused move changes nothing and says why; the dialog chooses another parent."""
    make(api, f"{folder}-a", folder)
    make(api, f"{folder}-b", f"{folder}-a")
    page = console.open(f"documents/{folder}-b")
    row(page, f"{folder}-b").wait_for()
    row(page, f"{folder}-a").drag_to(row(page, f"{folder}-b"), target_position={"x": 60, "y": 18})
    expect(page.locator(".toast.wrong")).to_contain_text("not below the document")
    page.get_by_role("button", name="Move …").click()
    page.get_by_role("button", name="Move below “All documents”").click()
    until(lambda: read(api, f"{folder}-b")["parent_id"] == "root")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_document_is_created_and_compared_by_keyboard(console: ConsolePage, api: ApiClient, folder: str) -> None:
    """A document is created, changed, and its two revisions are compared by keyboard alone."""
    page = console.open(f"documents/{folder}")
    console.tab_to("link", "New below it")
    page.keyboard.press("Enter")
    for name, text in (("Title", "Shelf"), ("Id (optional)", f"{folder}-shelf"), ("Text", "# Shelf\n\nfour boards")):
        console.tab_to("textbox", name)
        page.keyboard.type(text)
    console.tab_to("button", "Save")
    page.keyboard.press("Enter")
    expect(page.locator("article")).to_contain_text("four boards")
    console.tab_to("button", "Edit")
    page.keyboard.press("Enter")
    console.tab_to("textbox", "Text")
    page.keyboard.press("Control+A")
    page.keyboard.type("five boards")
    page.keyboard.press("Control+s")
    expect(page.locator("article")).to_contain_text("five boards")
    console.tab_to("button", "History")
    page.keyboard.press("Enter")
    for name, text in (("From revision", "1"), ("to revision", "2")):
        console.tab_to("spinbutton", name)
        page.keyboard.press("Control+A")
        page.keyboard.type(text)
    page.keyboard.press("Enter")
    expect(page.locator(".diff ins")).to_contain_text("five boards")
    expect(page.locator(".diff del").last).to_contain_text("four boards")
    console.tab_to("group", "Differences")


def test_rows_stay_expanded_while_another_page_is_shown(console: ConsolePage, api: ApiClient, folder: str) -> None:
    make(api, f"{folder}-inner", folder)
    page = console.open(f"documents/{folder}")
    row(page, folder).locator(".twist").click()
    expect(row(page, f"{folder}-inner")).to_be_visible()
    page.get_by_role("link", name="Ask", exact=True).click()
    expect(page.get_by_role("heading", name="Ask", exact=True)).to_be_visible()
    page.go_back()
    expect(row(page, f"{folder}-inner")).to_be_visible()


def test_rows_tell_their_position(console: ConsolePage, api: ApiClient, folder: str) -> None:
    """Each row of the tree tells its position and how many siblings it has, of which few are in the page."""
    for name in "abc":
        make(api, f"{folder}-{name}", folder)
    page = console.open(f"documents/{folder}-b")
    expect(row(page, f"{folder}-b")).to_have_attribute("aria-setsize", "3")
    expect(row(page, f"{folder}-b")).to_have_attribute("aria-posinset", "2")


def test_a_move_out_of_sight_leaves_the_focus_in_the_tree(
    console: ConsolePage, api: ApiClient, server: KhoServer, folder: str
) -> None:
    """A document that is moved to where nothing is loaded takes no focus later; its new parent has it."""
    make(api, f"{folder}-shelf", folder)
    make(api, f"{folder}-book", folder)
    seed_children(server.data, "local", f"{folder}-shelf", 600)
    page = console.open(f"documents/{folder}-book")
    expect(row(page, f"{folder}-book")).to_have_attribute("aria-selected", "true")
    console.tab_to("treeitem", f"{folder}-book")
    page.keyboard.press("Alt+ArrowRight")
    expect(row(page, f"{folder}-shelf")).to_be_focused()
    page.keyboard.press("End")
    expect(page.locator("[role=treeitem]:focus")).to_have_count(1)
    assert read(api, f"{folder}-book")["parent_id"] == f"{folder}-shelf"


def test_ten_thousand_children(console: ConsolePage, api: ApiClient, server: KhoServer, folder: str) -> None:
    """A tree with 10,000 children keeps few rows in the page, and an address leads to the last of them."""
    ids = seed_children(server.data, "local", folder, 10_000)
    page = console.open(f"documents/{ids[-1]}")
    expect(row(page, ids[-1])).to_have_attribute("aria-selected", "true")
    expect(row(page, ids[-1])).to_be_in_viewport()
    assert page.locator("[role=treeitem]").count() < 100
    row(page, ids[-1]).focus()
    page.keyboard.press("ArrowUp")
    expect(row(page, ids[-2])).to_be_focused()
    page.keyboard.press("Alt+ArrowDown")
    until(lambda: read(api, ids[-2])["revision"] == 2)
    page.keyboard.press("Home")
    expect(page.locator("[role=treeitem]").first).to_be_focused()


def test_conflict_of_two_tabs_is_shown_as_a_difference(console: ConsolePage, api: ApiClient, folder: str) -> None:
    """Of two tabs that edit one document, the second to save sees how the texts differ, and loses nothing."""
    make(api, f"{folder}-shared", folder, "first\nsecond\nthird\n")
    other = ConsolePage(console.page.context, console.address)
    for tab, text in ((console, "first\nMINE\nthird\n"), (other, "first\nTHEIRS\nthird\n")):
        tab.open(f"documents/{folder}-shared?view=edit")
        expect(tab.page.get_by_label("Text", exact=True)).to_have_value("first\nsecond\nthird\n")
        tab.page.get_by_label("Text", exact=True).fill(text)
    other.page.get_by_role("button", name="Save").click()
    expect(other.page.locator("article")).to_contain_text("THEIRS")
    page = console.page
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog").locator("del")).to_contain_text("THEIRS")
    expect(page.get_by_role("dialog").locator("ins")).to_contain_text("MINE")
    assert console.violations() == []
    assert "THEIRS" in read(api, f"{folder}-shared")["content"]["body"]
    page.get_by_role("button", name="Continue with my text").click()
    page.get_by_label("Text", exact=True).fill("first\nTHEIRS and MINE\nthird\n")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("article")).to_contain_text("THEIRS and MINE")
    expect(other.page.get_by_text("Revision 3 was saved by")).to_be_visible()
    assert other.problems == []


def test_a_move_meanwhile_is_no_conflict(console: ConsolePage, api: ApiClient, folder: str) -> None:
    """An edit is saved without a question if meanwhile only the document's place has changed."""
    make(api, f"{folder}-moved", folder)
    page = console.open(f"documents/{folder}-moved?view=edit")
    page.get_by_label("Text", exact=True).fill("edited")
    api.result(f"{AGENT}/move_document", document_id=f"{folder}-moved", new_parent_id="root")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("article")).to_contain_text("edited")
    assert read(api, f"{folder}-moved")["revision"] == 3


def test_unsaved_edits_survive_a_closed_tab(console: ConsolePage, api: ApiClient, folder: str) -> None:
    """Typed text is back after the tab was closed, and a save by others meanwhile is still a conflict."""
    make(api, f"{folder}-kept", folder, "before")
    page = console.open(f"documents/{folder}-kept?view=edit")
    page.get_by_label("Text", exact=True).fill("typed, not saved")
    page.close()
    tab = ConsolePage(page.context, console.address)
    tab.open("documents")
    tab.page.get_by_role("link", name=f"{folder}-kept", exact=True).click()
    expect(tab.page.get_by_label("Text", exact=True)).to_have_value("typed, not saved")
    tab.page.close()
    content = {"body": "saved by another"}
    api.result(f"{AGENT}/update_document", document_id=f"{folder}-kept", patch={"content": content})
    tab = ConsolePage(page.context, console.address)
    tab.open(f"documents/{folder}-kept?view=edit")
    expect(tab.page.get_by_label("Text", exact=True)).to_have_value("typed, not saved")
    tab.page.get_by_role("button", name="Save").click()
    tab.page.get_by_role("button", name="Save mine over it").click()
    until(lambda: read(api, f"{folder}-kept")["content"]["body"] == "typed, not saved")
    expect(tab.page.locator("article")).to_contain_text("typed, not saved")
    tab.open("documents")
    expect(tab.page.get_by_role("heading", name="Documents")).to_be_visible()
    expect(tab.page.get_by_role("link", name=f"{folder}-kept", exact=True)).to_have_count(0)
    assert tab.problems == []


def test_text_cannot_be_lost_while_it_is_saved(console: ConsolePage, api: ApiClient, folder: str) -> None:
    """The editor shows what is saved until the save ends, though keys were pressed meanwhile."""
    make(api, f"{folder}-saved", folder, "before")
    page = console.open(f"documents/{folder}-saved?view=edit")
    held = HeldCalls(page, "update_document")
    text = page.get_by_label("Text", exact=True)
    text.fill("typed before")
    page.keyboard.press("Control+s")
    until(lambda: held.waiting)
    page.keyboard.type(" and after")
    shown = text.input_value()
    held.release()
    expect(page.locator("article")).to_be_visible()
    assert read(api, f"{folder}-saved")["content"]["body"] == shown


def test_a_draft_whose_base_cannot_be_read_stays_readable(console: ConsolePage, api: ApiClient, folder: str) -> None:
    """Typed text is shown while the revision that it began with cannot be read, and edited after a retry."""
    make(api, f"{folder}-base", folder, "before")
    page = console.open(f"documents/{folder}-base?view=edit")
    page.get_by_label("Text", exact=True).fill("typed, not saved")
    page.close()
    api.result(f"{AGENT}/update_document", document_id=f"{folder}-base", patch={"content": {"body": "by another"}})
    tab = ConsolePage(page.context, console.address)

    def refuse(route: Route) -> None:
        if "revision" in json.loads(route.request.post_data or "{}"):
            route.fulfill(status=503, json={"code": "UNAVAILABLE", "message": "The store does not answer."})
        else:
            route.continue_()

    tab.page.route("**/get_document", refuse)
    tab.page.goto(f"{console.address}/console/#/documents/{folder}-base?view=edit")
    expect(tab.page.get_by_text("typed, not saved")).to_be_visible()
    tab.page.unroute("**/get_document")
    tab.page.get_by_role("button", name="Try again").click()
    expect(tab.page.get_by_label("Text", exact=True)).to_have_value("typed, not saved")
    assert tab.problems == []


def test_hostile_markdown_is_harmless(console: ConsolePage, api: ApiClient, folder: str) -> None:
    """Scripts, SVG, frames and other sites' images in a document neither run nor load."""
    title = '<img src="https://other.example/title.png" onerror="window.hacked=9">\u202e\u0007'
    make(api, f"{folder}-hostile", folder, f"{HOSTILE}\n\u202ereversed\n", title=title, tags=["<b>tag</b>\u202e"])
    page = console.open(f"documents/{folder}-hostile")
    expect(page.locator("article h1")).to_have_text("Hostile")
    expect(page.locator("article")).to_contain_text("\ufffdreversed")
    expect(row(page, f"{folder}-hostile")).to_contain_text("\ufffd\ufffd")
    assert not {"\u202e", "\u0007"} & set(page.locator("body").inner_text())
    inside = page.locator("article")
    for forbidden in ("script", "svg", "img", "iframe", "style", "form", "button", "object", "[onerror]", "[onload]"):
        assert inside.locator(forbidden).count() == 0, forbidden
    addresses = [each.get_attribute("href") for each in inside.locator("a[href]").all()]
    assert "https://kho.example/" in addresses
    assert all(address and address.startswith("https://") for address in addresses), addresses
    assert page.evaluate("window.hacked") is None
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_role("button", name="Preview").click()
    expect(page.locator(".editor h1").last).to_have_text("Hostile")
    assert page.evaluate("window.hacked") is None


def test_images_of_a_text_are_shown_if_their_kind_is_allowed(console: ConsolePage, api: ApiClient, folder: str) -> None:
    """PNG, JPEG, GIF and WebP images inside of a text are shown; any other is its description alone."""
    kinds = ("png", "jpeg", "gif", "webp", "svg+xml", "bmp", "x-icon", "pngx")
    images = " ".join(f"![kind {kind}](data:image/{kind};base64,AAAA)" for kind in kinds)
    make(api, f"{folder}-images", folder, f"# Images\n\n{images} ![text](data:text/html;base64,AAAA)")
    page = console.open(f"documents/{folder}-images")
    expect(page.locator("article h1")).to_have_text("Images")
    inside = page.locator("article")
    shown = [each.get_attribute("alt") for each in inside.locator("img").all()]
    assert shown == ["kind png", "kind jpeg", "kind gif", "kind webp"]
    expect(inside).to_contain_text("kind svg+xml kind bmp kind x-icon kind pngx text")
    assert inside.locator("a[href]").count() == 0


def test_a_long_paragraph_is_rendered_when_the_reader_wants_it(
    console: ConsolePage, api: ApiClient, folder: str
) -> None:
    """A paragraph whose rendering could take seconds is shown as it is; several shorter ones are rendered."""
    blanks = "\u2002" * 2_500  # embedding a text takes its time, which is not the subject
    make(api, f"{folder}-long", folder, "The beginning" + blanks * 20)
    page = console.open(f"documents/{folder}-long")
    expect(page.locator("article pre")).to_contain_text("The beginning")
    expect(page.get_by_role("button", name="Show it formatted")).to_be_visible()
    make(api, f"{folder}-parts", folder, "# Parts\n\n" + f"x{blanks}\n\n" * 21)
    page.evaluate("address => { location.hash = address }", f"#/documents/{folder}-parts")
    expect(page.locator("article h1")).to_have_text("Parts")


def test_document_without_its_renderer_is_shown_as_text(console: ConsolePage, api: ApiClient, folder: str) -> None:
    """While the modules that render Markdown cannot be loaded, a document is plain text; later ones are rendered."""
    make(api, f"{folder}-plain", folder, "Some **text**")
    console.page.route("**/vendor/marked.js", lambda route: route.abort())
    page = console.open(f"documents/{folder}-plain")
    expect(page.locator("article pre")).to_have_text("Some **text**")
    page.unroute("**/vendor/marked.js")
    page.evaluate("address => { location.hash = address }", f"#/documents/{folder}")
    expect(page.locator("article .markdown")).to_have_text("x")


def test_document_of_2_mib(console: ConsolePage, api: ApiClient, folder: str) -> None:
    """A document of 2 MiB is shown, edited, kept and compared."""
    # Blanks, different in each line: the time that embedding a text takes is not the subject.
    blanks = str.maketrans("01", "\u2002\u2003")
    lines = (f"{number:016b}\n".translate(blanks) for number in range(2 * 1024 * 1024 // 49 - 10))
    body = "The beginning\n" + "".join(lines)
    make(api, f"{folder}-large", folder, body)
    page = console.open(f"documents/{folder}-large")
    expect(page.locator("article pre")).to_contain_text("The beginning")
    page.get_by_role("button", name="Edit", exact=True).click()
    editor = page.get_by_label("Text", exact=True)
    expect(editor).to_have_value(re.compile("^The beginning"))
    parts = page.get_by_label("Part of the text")
    parts.select_option(index=parts.get_by_role("option").count() - 1)
    expect(editor).not_to_have_value(re.compile("^The beginning"))
    editor.focus()
    page.keyboard.press("Control+End")
    page.keyboard.type("the end")
    parts.select_option(index=1)
    expect(editor).not_to_have_value(re.compile("the end$"))
    editor.focus()
    page.keyboard.press("Control+Home")
    page.keyboard.type("the second part ")
    assert console.violations() == []
    page.get_by_role("button", name="Save").click()
    until(lambda: read(api, f"{folder}-large")["revision"] == 2)
    stored = read(api, f"{folder}-large")["content"]["body"]
    cut = stored.index("the second part ")
    assert cut > 50_000
    assert stored == f"{body[:cut]}the second part {body[cut:]}the end"
    page.get_by_role("button", name="History").click()
    page.get_by_role("button", name="What revision 2 changed").click()
    expect(page.locator(".diff ins").last).to_contain_text("the end")
    assert page.locator(".diff .line").count() < 20


def test_every_view_is_accessible_and_fits(console: ConsolePage, api: ApiClient, folder: str) -> None:
    """Reading, editing, comparing and creating have no violation, at three widths in both themes, with long names."""
    long_title = f"{folder} {'DonaudampfschifffahrtsgesellschaftWordThatNeverEnds' * 6}"
    make(
        api,
        f"{folder}-{'x' * 100}",
        folder,
        "| a | b |\n|---|---|\n| `code` | x |\n",
        title=long_title,
        tags=["t" * 200],
    )
    id_ = f"{folder}-{'x' * 100}"
    api.result(f"{AGENT}/update_document", document_id=id_, patch={"content": {"body": "y " * 500}})
    for address in (f"documents/{id_}", f"documents/{id_}?view=edit", f"documents/{id_}?view=history&from=1&to=2"):
        console.open(address)
        assert console.faults() == [], address


def test_a_document_that_is_not_there(console: ConsolePage) -> None:
    """An address of no document says so with guidance."""
    page = console.open(f"documents/none-{uuid4().hex}")
    expect(page.get_by_role("alert")).to_contain_text("Document not found")
    expect(page.get_by_role("alert")).to_contain_text("list_children")


def test_differences_lead_from_one_text_to_the_other(console: ConsolePage) -> None:
    """Removed and equal lines make up the first text, added and equal lines the second, also of large texts."""
    page = console.open("documents")
    chosen = random.Random(7)
    for size in (0, 1, 3, 30, 3000):
        before = [str(chosen.randrange(max(2, size // 3))) for _ in range(size)]
        after = [each for each in before if chosen.random() > 0.1]
        for _ in range(size // 20 + 1):
            after.insert(chosen.randrange(len(after) + 1), f"new {chosen.random()}")
        parts = differences(page, before, after)
        assert [line for each in parts if each["kind"] != "added" for line in each["lines"]] == "\n".join(before).split(
            "\n"
        )
        assert [line for each in parts if each["kind"] != "removed" for line in each["lines"]] == "\n".join(
            after
        ).split("\n")
        changed = sum(len(each["lines"]) for each in parts if each["kind"] != "same")
        assert changed <= 2 * (len(before) // 8 + len(after) // 8 + size // 20 + 3)


def test_distant_edits_among_equal_lines_are_shown_alone(console: ConsolePage) -> None:
    """Two edits at both ends of many equal lines are two changes, though no line occurs only once."""
    page = console.open("documents")
    before, after = ["-"] * 20_000, ["-"] * 20_000
    after[3:3], after[-3:-3] = ["new", "new"], ["new", "new"]
    assert [(each["kind"], len(each["lines"])) for each in differences(page, before, after)] == [
        ("same", 3),
        ("added", 2),
        ("same", 19_994),
        ("added", 2),
        ("same", 3),
    ]
