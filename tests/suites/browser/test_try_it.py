"""Try it: every method with a form, the request as curl, and the JSON-RPC pad."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Final

from playwright.sync_api import expect

from shared.rpc.catalogue import catalogue
from tests.helpers.wait import CEILING_SECONDS

STEP: Final = 5
"""Of each server, the first of as many methods is opened."""

if TYPE_CHECKING:
    from tests.helpers.kho_server import KhoServer
    from tests.suites.browser.console_page import ConsolePage


def test_every_method_has_a_form(console: ConsolePage, server: KhoServer) -> None:
    """The list has each method of /openapi.json, and a search narrows it. Methods of each server have their fields."""
    page = console.open("try_it")
    paths = json.loads(server.get("/openapi.json").data)["paths"]
    methods = {path[1:] for path in paths if path.split("/")[1] in catalogue().servers}
    links = page.get_by_role("navigation", name="Methods").get_by_role("listitem").get_by_role("link")
    expect(links).to_have_count(len(methods))
    assert {link.get_attribute("href") for link in links.all()} == {f"#/try_it/{name}" for name in methods}
    for server_name in sorted({name.partition("/")[0] for name in methods}):
        for name in [each for each in sorted(methods) if each.startswith(f"{server_name}/")][::STEP]:
            links.and_(page.locator(f'[href="#/try_it/{name}"]')).click()
            form = page.get_by_role("region", name=name).locator("form")
            schema = paths[f"/{name}"]["post"]["requestBody"]["content"]["application/json"]["schema"]
            if "properties" in schema:
                expect(form.locator(".fields").first.locator("> .field")).to_have_count(len(schema["properties"]))
            else:
                expect(form).to_contain_text("It takes no parameters.")
    page.get_by_label("Find a method").fill("memory/set_summary")
    expect(links).to_have_count(1)


def test_method_page_is_accessible(console: ConsolePage) -> None:
    page = console.open("try_it/agent-data/query_knowledge")
    page.get_by_role("button", name="Send").wait_for()
    assert console.faults() == []


def test_parameters_survive_a_reload(console: ConsolePage, server: KhoServer) -> None:
    """Typed parameters are there after a reload, until the method took them."""
    server.call("memory-server/memory/get_or_create", conversation_id="chat_kept_params")
    page = console.open("try_it/memory-server/memory/set_summary")
    for name, text in (("conversation_id", "chat_kept_params"), ("summary", "typed")):
        page.get_by_label(f"{name} (required)").fill(text)
    page.reload()
    expect(page.get_by_label("summary (required)")).to_have_value("typed")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".state.good", has_text="200")).to_be_visible()
    page.reload()
    expect(page.get_by_label("summary (required)")).to_have_value("")


def test_method_is_called_by_keyboard_alone(console: ConsolePage, server: KhoServer) -> None:
    """Parameters are filled in and sent by keyboard; the answer has its status, and the request is shown as curl."""
    page = console.open("try_it/memory-server/memory/add_message")
    console.tab_to("textbox", "conversation_id (required)")
    page.keyboard.type("chat_try_it")
    console.tab_to("combobox", "role (required)")
    page.keyboard.type("user")
    console.tab_to("textbox", "content (required)")
    page.keyboard.type("It's a test")
    console.tab_to("button", "Send")
    page.keyboard.press("Enter")
    expect(page.locator(".state.good", has_text="200")).to_be_visible()
    (message,) = server.call("memory-server/memory/get_context", conversation_id="chat_try_it")["messages"]
    assert message["content"] == "It's a test"
    command = page.get_by_label("The request as curl").inner_text()
    subprocess.run(["bash", "-c", command], check=True, capture_output=True, timeout=CEILING_SECONDS)
    messages = server.call("memory-server/memory/get_context", conversation_id="chat_try_it")["messages"]
    assert [each["content"] for each in messages] == ["It's a test"] * 2


def test_refusal_is_shown_at_its_field(console: ConsolePage) -> None:
    """A refused parameter is marked at its field, with the server's words."""
    page = console.open("try_it/agent-data/get_document")
    page.get_by_label("document_id (required)").fill("no such id!")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".state.wrong", has_text="400")).to_be_visible()
    field = page.get_by_label("document_id (required)")
    expect(field).to_have_attribute("aria-invalid", "true")
    assert console.violations() == []


def test_pad_sends_what_is_written_and_keeps_it(console: ConsolePage) -> None:
    """The pad sends a batch as it stands. Its text survives a reload."""
    page = console.open("try_it/jsonrpc")
    batch = [{"jsonrpc": "2.0", "method": "tool-server/tools/list", "id": each} for each in (7, 8)]
    page.get_by_label("Request").fill(json.dumps(batch))
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".state.good", has_text="200")).to_be_visible()
    answers = json.loads(page.get_by_label("Answer").inner_text())
    assert [each["id"] for each in answers] == [7, 8]
    page.reload()
    expect(page.get_by_label("Request")).to_have_value(json.dumps(batch))
