"""The page Knowledge: collections, ingestion, queries with the parts of their scores, passages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.helpers.pdf import make_pdf, text_stream
from tests.helpers.wait import until

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import FilePayload, Page, Route

    from tests.helpers.kho_server import KhoServer
    from tests.suites.browser.console_page import ConsolePage

FERNS = "# Ferns\n\nFerns like shade.\n\n## Watering\n\nWater ferns early in the morning.\n"
HOSTILE = (
    "# <script>document.title='hit'</script>\n\n<img src=x onerror=\"document.title='hit'\"> "
    "[here](javascript:document.title='hit') \u202etxt.exe <svg onload=\"document.title='hit'\"></svg>\n"
)


def make_collection(server: KhoServer, name: str, **documents: str) -> None:
    server.call("research-agent/manage_collections", action="create", collection_name=name)
    sent = [{"path": path.replace("__", "/") + ".md", "content": text} for path, text in documents.items()]
    server.call("research-agent/ingest_documents", collection=name, documents=sent)


def test_documents_are_added_and_found_by_mouse(console: ConsolePage, tmp_path: Path) -> None:
    """A collection is made, filled with files, and searched; a result leads to its passage."""
    page = console.open("knowledge")
    page.get_by_role("button", name="New collection").first.click()
    page.get_by_label("Name").fill("by-mouse")
    page.get_by_role("button", name="Create", exact=True).click()
    page.get_by_role("heading", name="by-mouse").wait_for()
    good, bad = tmp_path / "ferns.md", tmp_path / "picture.md"
    good.write_text(FERNS, encoding="utf-8")
    bad.write_bytes(b"\xff\x00\x01\x02")
    page.locator("input[data-purpose=files]").set_input_files([good, bad])
    page.get_by_text("1 added, 0 updated, 0 unchanged.").wait_for()
    assert "is not text" in page.locator(".failures li").inner_text()
    page.get_by_label("Query").fill("when are ferns watered")
    page.get_by_role("button", name="Search", exact=True).click()
    page.get_by_text("How the score comes about").first.click()
    row = page.get_by_role("row", name="Words in common")
    row.wait_for()
    assert row.get_by_role("cell").count() == 3
    page.get_by_role("link", name="ferns.md › Ferns > Watering").click()
    current = page.locator("[aria-current=true]")
    expect(current).to_contain_text("Water ferns early")
    assert page.url.endswith("#/knowledge/by-mouse/ferns.md?passage=2")


def test_documents_are_found_by_keyboard(console: ConsolePage, server: KhoServer) -> None:
    make_collection(server, "by-keyboard", plants__ferns=FERNS)
    page = console.open("knowledge/by-keyboard")
    console.tab_to("searchbox", "Query")
    page.keyboard.type("shade for ferns")
    page.keyboard.press("Enter")
    console.tab_to("link", "plants/ferns.md › Ferns")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Ferns", exact=True).first.wait_for()
    expect(page.locator("main article")).to_have_count(2)


def test_query_that_is_repeated_finds_what_was_added_meanwhile(console: ConsolePage, server: KhoServer) -> None:
    make_collection(server, "repeated", roses="# Roses\n\nRoses like sun.\n")
    page = console.open("knowledge/repeated?q=when+are+ferns+watered")
    page.get_by_role("button", name="Search", exact=True).wait_for()
    console.settle()
    server.call(
        "research-agent/ingest_documents", collection="repeated", documents=[{"path": "ferns.md", "content": FERNS}]
    )
    console.search_until_found("ferns.md › Ferns > Watering")


def test_hidden_characters_in_an_error_are_marked(console: ConsolePage) -> None:
    """A link may hold any name; the server's error quotes it."""
    page = console.open("knowledge/fer%E2%80%AEns")
    expect(page.get_by_role("alert").first).to_contain_text("fer\ufffdns")
    assert "\u202e" not in page.locator("main").inner_text()


def test_documents_are_added_by_keyboard(console: ConsolePage, tmp_path: Path) -> None:
    """A collection is made, and a file is chosen for it, by keyboard alone."""
    file = tmp_path / "ferns.md"
    file.write_text(FERNS, encoding="utf-8")
    console.page.on("filechooser", lambda chooser: chooser.set_files(file))
    page = console.open("knowledge")
    console.tab_to("button", "New collection")
    page.keyboard.press("Enter")
    page.get_by_role("dialog").wait_for()
    assert console.faults() == []
    console.tab_to("textbox", "Name")
    page.keyboard.type("typed")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="typed").wait_for()
    console.tab_to("button", "Choose files …")
    page.keyboard.press("Enter")
    page.get_by_text("1 added, 0 updated, 0 unchanged.").wait_for()
    console.tab_to("link", "ferns.md")
    page.keyboard.press("Enter")
    page.get_by_text("Ferns like shade.").wait_for()


def test_dropped_files_are_added(console: ConsolePage, server: KhoServer) -> None:
    make_collection(server, "dropped")
    page = console.open("knowledge/dropped")
    page.locator(".drop").wait_for()
    page.evaluate(
        """text => {
          const dataTransfer = new DataTransfer();
          dataTransfer.items.add(new File([text], "dropped.md"));
          const event = new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true });
          document.querySelector(".drop").dispatchEvent(event);
        }""",
        FERNS,
    )
    page.get_by_text("1 added, 0 updated, 0 unchanged.").wait_for()
    page.get_by_role("link", name="dropped.md").wait_for()


@pytest.mark.parametrize("way", ["drop", "choose"])
def test_pdf_is_read_and_kinds_without_text_are_skipped(console: ConsolePage, server: KhoServer, way: str) -> None:
    """A PDF is added by drop or file chooser, encodings are reported, and pictures and archives are no failures."""
    make_collection(server, f"files-{way}")
    page = console.open(f"knowledge/files-{way}")
    page.locator(".drop").wait_for()
    files: list[FilePayload] = [
        {"name": "orchids.pdf", "mimeType": "application/pdf", "buffer": make_pdf(text_stream(b"Orchids like shade."))},
        {"name": "lan.txt", "mimeType": "text/plain", "buffer": "兰花每十天浇一次水。".encode("gb18030")},
        {"name": "leaf.jpg", "mimeType": "image/jpeg", "buffer": b"\xff\xd8\xff\0"},
        {"name": "old.xlsx", "mimeType": "", "buffer": b"PK\3\4\0"},
    ]
    if way == "choose":
        page.locator("input[data-purpose=files]").set_input_files(files)
    else:
        page.evaluate(
            """files => {
              const dataTransfer = new DataTransfer();
              for (const [name, type, bytes] of files)
                dataTransfer.items.add(new File([new Uint8Array(bytes)], name, { type }));
              const event = new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true });
              document.querySelector(".drop").dispatchEvent(event);
            }""",
            [[each["name"], each["mimeType"], list(each["buffer"])] for each in files],
        )
    page.get_by_text("2 added, 0 updated, 0 unchanged.").wait_for()
    page.get_by_text("Skipped, because they hold no text: 1 pictures, 1 office documents.").wait_for()
    expect(page.locator(".notes li")).to_have_text("lan.txt read as GB18030")
    assert page.locator(".failures").count() == 0
    page.get_by_role("link", name="orchids.pdf").click()
    page.get_by_text("Orchids like shade.").wait_for()
    assert console.faults() == []


def add_file(page: Page, name: str) -> None:
    file: FilePayload = {"name": name, "mimeType": "text/markdown", "buffer": FERNS.encode()}
    page.locator("input[data-purpose=files]").set_input_files(file)


@pytest.fixture
def held(console: ConsolePage) -> list[Route]:
    """Return the ingestions that the page has sent; the test lets each go on."""
    routes: list[Route] = []
    console.page.route("**/ingest_documents", lambda route: routes.append(route))  # noqa: PLW0108 - no builtin
    return routes


def wait_for_routes(page: Page, held: list[Route], count: int) -> None:
    until(lambda: page.title() and len(held) == count)  # any call lets Playwright hand over the routes


def test_files_that_are_added_meanwhile_follow(console: ConsolePage, server: KhoServer, held: list[Route]) -> None:
    """Files that are chosen during an ingestion come after it; none is lost."""
    make_collection(server, "queued")
    page = console.open("knowledge/queued")
    add_file(page, "first.md")
    wait_for_routes(page, held, 1)
    add_file(page, "second.md")
    page.get_by_text("0 of 2 files …").wait_for()
    held[0].continue_()
    wait_for_routes(page, held, 2)
    held[1].continue_()
    page.get_by_text("2 added, 0 updated, 0 unchanged.").wait_for()
    page.get_by_role("link", name="second.md").wait_for()


def test_ingestion_goes_on_while_another_page_is_shown(
    console: ConsolePage, server: KhoServer, held: list[Route]
) -> None:
    """An ingestion whose page is left goes on; its outcome is shown on the page that is open then."""
    make_collection(server, "left")
    page = console.open("knowledge/left")
    add_file(page, "left.md")
    wait_for_routes(page, held, 1)
    page.get_by_role("link", name="Connect", exact=True).click()
    page.get_by_role("heading", name="Connect", exact=True).wait_for()
    held[0].continue_()
    page.get_by_text("left: 1 added, 0 updated, 0 unchanged.").wait_for()


def test_stopped_ingestion_says_how_far_it_came(console: ConsolePage, server: KhoServer, held: list[Route]) -> None:
    """After Stop the page says that it was stopped, and after how many files."""
    make_collection(server, "stopped")
    page = console.open("knowledge/stopped")
    files: list[FilePayload] = [
        {"name": f"{number}.md", "mimeType": "text/markdown", "buffer": FERNS.encode()} for number in range(51)
    ]
    page.locator("input[data-purpose=files]").set_input_files(files)
    wait_for_routes(page, held, 1)
    held[0].fulfill(json={"status": "done", "added": 50, "updated": 0, "unchanged": 0, "failed": []})
    wait_for_routes(page, held, 2)
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("Stopped after 50 of 51 files. 50 added, 0 updated, 0 unchanged.").wait_for()


def test_file_that_cannot_be_read_stops_no_other(console: ConsolePage, server: KhoServer) -> None:
    """A dropped file or folder that the browser cannot read is listed; the others are added."""
    make_collection(server, "unreadable")
    page = console.open("knowledge/unreadable")
    page.locator(".drop").wait_for()
    page.evaluate(
        """text => {
          const fail = (_, reject) => reject(new DOMException("It is gone.", "NotFoundError"));
          const entries = [
            { isFile: true, fullPath: "/gone.md", file: fail },
            { isFile: false, fullPath: "/folder", createReader: () => ({ readEntries: fail }) },
            { isFile: true, fullPath: "/there.md", file: (resolve) => resolve(new File([text], "there.md")) },
          ];
          const items = entries.map(entry => ({ kind: "file", getAsFile: () => null, webkitGetAsEntry: () => entry }));
          const event = new Event("drop", { bubbles: true, cancelable: true });
          document.querySelector(".drop").dispatchEvent(Object.assign(event, { dataTransfer: { items } }));
        }""",
        FERNS,
    )
    page.get_by_text("1 added, 0 updated, 0 unchanged.").wait_for()
    expect(page.locator(".failures li")).to_have_text(["gone.md It is gone.", "folder It is gone."])


def test_job_is_not_polled_while_the_page_is_hidden(console: ConsolePage, server: KhoServer, held: list[Route]) -> None:
    """A page that waits for an ingestion asks for nothing while it is hidden, and goes on when it is shown."""
    make_collection(server, "hidden")
    jobs: list[str] = []
    job = {"status": "done", "added": 7, "updated": 0, "unchanged": 0, "failed": []}
    page = console.page
    page.clock.install(time=0)
    console.open("knowledge/hidden")
    page.clock.pause_at(3600)
    page.on("request", lambda request: jobs.append(request.url) if request.url.endswith("/get_ingestion") else None)
    page.route("**/get_ingestion", lambda route: route.fulfill(json=job))
    add_file(page, "hidden.md")
    wait_for_routes(page, held, 1)
    console.set_hidden(True)
    with page.expect_response("**/ingest_documents"):
        held[0].fulfill(json={"status": "accepted", "job_id": "hidden"})
    page.clock.run_for(60_000)
    page.evaluate("fetch('/health')")  # requests that were sent before it are known now
    assert jobs == []
    console.set_hidden(False)
    page.get_by_text("7 added, 0 updated, 0 unchanged.").wait_for()


def test_document_shows_when_it_is_indexed(console: ConsolePage, server: KhoServer) -> None:
    """A document that is being indexed shows by itself that it can be found, in its collection and on its page."""
    make_collection(server, "pending", ferns=FERNS)
    pending = True

    def answer(route: Route) -> None:
        response = route.fetch()
        body = response.json()
        for document in [*body.get("documents", []), body.get("document", {})]:
            document["indexed"] = not pending
        route.fulfill(response=response, json=body)

    page = console.page
    page.route("**/list_documents", answer)
    page.route("**/list_passages", answer)
    for address in ("knowledge/pending", "knowledge/pending/ferns.md"):
        pending = True
        console.open(address)
        page.locator(".state.note").wait_for()
        pending = False
        expect(page.locator(".state.note")).to_have_count(0)
        page.locator("main article").first.wait_for()


def test_document_is_removed_from_the_list(console: ConsolePage, server: KhoServer) -> None:
    """A document of a collection is taken out where it is listed, or on its page; the collection's counts follow."""
    make_collection(server, "removed", ferns=FERNS, moss="# Moss", roses="# Roses")
    page = console.open("knowledge/removed")
    page.get_by_text("3 documents · 4 passages").wait_for()
    page.get_by_role("button", name="Remove the document moss.md").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove the document").click()
    page.get_by_text("2 documents · 3 passages").wait_for()
    assert page.get_by_role("link", name="moss.md").count() == 0
    page.get_by_role("link", name="roses.md").click()
    page.get_by_role("button", name="Remove the document roses.md").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove the document").click()
    page.get_by_text("1 documents · 2 passages").wait_for()
    listed = server.call("research-agent/list_documents", collection_name="removed")
    assert [each["path"] for each in listed["documents"]] == ["ferns.md"]


def test_folder_is_added_without_hidden_files(console: ConsolePage, server: KhoServer, tmp_path: Path) -> None:
    """Files of a folder keep their paths. Adding them again changes nothing."""
    make_collection(server, "folder")
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "moss.md").write_text("# Moss\n\nMoss grows.", encoding="utf-8")
    (folder / ".secret.md").write_text("not for all", encoding="utf-8")
    page = console.open("knowledge/folder")
    for outcome in ("1 added, 0 updated, 0 unchanged.", "0 added, 0 updated, 1 unchanged."):
        page.locator("input[data-purpose=folder]").set_input_files(folder)
        page.get_by_text(outcome).wait_for()
        page.get_by_text("1 hidden file was left out.").wait_for()
    page.get_by_role("link", name="notes/deep/moss.md").wait_for()


def test_long_ingestion_reports_its_progress(console: ConsolePage, server: KhoServer, tmp_path: Path) -> None:
    """The page waits for an ingestion that becomes a job, and shows its outcome."""
    make_collection(server, "long")
    file = tmp_path / "long.md"
    file.write_text("# Long\n\n" + "\n" * 26_000 + "The end of it.", encoding="utf-8")
    page = console.open("knowledge/long")
    page.locator("input[data-purpose=files]").set_input_files(file)
    page.get_by_text("1 added, 0 updated, 0 unchanged.").wait_for()
    page.get_by_role("link", name="long.md").wait_for()


def test_hint_is_clicked_to_refine_the_query(console: ConsolePage, server: KhoServer) -> None:
    """A suggested word takes the place of the misspelt one."""
    make_collection(server, "hints", ferns=FERNS)
    page = console.open("knowledge/hints?q=watring")
    page.get_by_role("button", name="Watering").click()
    page.wait_for_url("**q=Watering")
    until(lambda: page.get_by_label("Query").input_value() == "Watering")


def test_links_lead_to_documents_and_headings(console: ConsolePage, server: KhoServer) -> None:
    """A relative link leads to the document of the collection, and an anchor to the passage under its heading."""
    links = "# Start\n\n[care](care.md#Cutting%20back) [away](../../x.md) [below](#Last%20one) ![a](a.png)\n\n"
    care = "# Care\n\nwords\n\n## Watering\n\nmore\n\n## Cutting back\n\nIn spring. [back](./start.md)\n"
    make_collection(server, "linked", docs__start=f"{links}## Last one\n\nThe end.\n", docs__care=care)
    page = console.open("knowledge/linked/docs/start.md")
    page.get_by_role("link", name="care").click()
    expect(page.locator("[aria-current=true]")).to_contain_text("In spring.")
    page.get_by_role("link", name="back").click()
    page.get_by_role("link", name="below").click()
    expect(page.locator("[aria-current=true]")).to_contain_text("The end.")
    assert page.locator(".markdown a:not([href])").all_inner_texts() == ["away", "a"]


def test_hostile_document_does_nothing(console: ConsolePage, server: KhoServer) -> None:
    """Scripts, pictures and addresses in a document are text, and text is not turned around."""
    make_collection(server, "hostile", bad=HOSTILE)
    for address in ("knowledge/hostile/bad.md", "knowledge/hostile?q=here"):
        page = console.open(address)
        page.locator("main article").first.wait_for()
        page.get_by_text("\ufffdtxt.exe").first.wait_for()
        assert page.locator("main script, main svg, main img, a[href^=javascript]").count() == 0
        assert "hit" not in page.title()


def test_pages_are_accessible_with_content(console: ConsolePage, server: KhoServer) -> None:
    long = "w" * 64
    make_collection(server, long, **{"f" * 200: FERNS, "empty__" + "x" * 100: "# " + "y" * 300 + "\n\ntext"})
    make_collection(server, "accessible", ferns=FERNS)
    for address in ("knowledge/accessible?q=ferns", "knowledge/accessible/ferns.md", f"knowledge/{long}", "knowledge"):
        page = console.open(address)
        page.locator("main article").first.wait_for()
        page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert console.faults() == [], address


@pytest.mark.parametrize("address", ["knowledge/absent", "knowledge/absent/a.md"])
def test_unknown_address_says_what_to_do(console: ConsolePage, address: str) -> None:
    page = console.open(address)
    page.get_by_role("alert").get_by_text("Collection not found: absent").wait_for()
