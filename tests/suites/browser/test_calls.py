"""Calls of the server: polling, answers that are none, and lost connections."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

import pytest
from playwright.sync_api import expect

from tests.helpers.api_client import ApiClient
from tests.helpers.wait import until

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

    from tests.helpers.kho_server import KhoServer
    from tests.suites.browser.console_page import ConsolePage

POLL: Final = """async ([api, failure]) => {
  const { poll } = await import(api);
  window.times = [];
  window.failure = failure;
  poll(async () => {
    times.push(Date.now());
    if (window.failure) throw Object.assign(new Error(), { name: window.failure });
  }, { every: 1000, most: 5000 });
}"""
USE_KEY: Final = "address => import(address).then(({ useKey }) => useKey('kho_another'))"
CUT: Final = """(() => {
  const original = window.fetch;
  window.cut = true;
  window.fetch = async (path, init) => {
    if (!window.cut || path !== "/openapi.json") return original(path, init);
    return new Response(new ReadableStream({ start(controller) {
      controller.enqueue(new TextEncoder().encode('{"paths":'));
      controller.error(new TypeError("network error"));
    } }));
  };
})()"""
LATE: Final = """async address => {
  const [{ h, render }, { useData }] = await Promise.all([import("preact"), import(address)]);
  const [answers, results] = [[], []];
  let data;
  const Probe = () => {
    data = useData(() => new Promise((resolve) => answers.push(resolve)));
    results.push(data.value);
    return null;
  };
  const task = () => new Promise((resolve) => setTimeout(resolve));
  render(h(Probe), document.createElement("div"));
  while (answers.length < 1) await task();
  data.reload();
  answers[1]("newer");
  while (!results.includes("newer")) await task();
  answers[0]("older");
  await task();
  await task();
  return results.at(-1);
}"""


def intervals(page: Page) -> list[int]:
    """Return the milliseconds between the runs of the poll."""
    times: list[int] = page.evaluate("times")
    return [after - before for before, after in itertools.pairwise(times)]


@pytest.fixture
def paused(console: ConsolePage) -> ConsolePage:
    """Return a tab whose clock stands still until the test moves it."""
    console.page.clock.install(time=0)
    console.open("connect")
    console.page.clock.pause_at(3600)
    return console


def test_poll_backs_off_after_failures(paused: ConsolePage) -> None:
    """Each failure doubles the pause, up to its limit; a success sets it back."""
    page = paused.page
    page.evaluate(POLL, [paused.module("api.js"), "Error"])
    page.clock.run_for(17_000)
    assert intervals(page) == [2000, 4000, 5000, 5000]
    page.evaluate("window.failure = ''")
    page.clock.run_for(6_000)
    assert intervals(page)[4:] == [5000, 1000, 1000]


def test_poll_stops_while_the_page_is_hidden(paused: ConsolePage) -> None:
    """A hidden page polls nothing. It polls at once when it is shown again."""
    page = paused.page
    page.evaluate(POLL, [paused.module("api.js"), ""])
    page.clock.run_for(2_000)
    paused.set_hidden(True)
    page.clock.run_for(60_000)
    assert intervals(page) == [1000, 1000]
    paused.set_hidden(False)
    assert intervals(page) == [1000, 1000, 60_000]
    page.clock.run_for(1_000)
    assert intervals(page)[3:] == [1000]


def test_poll_waits_after_a_cancelled_sign_in(paused: ConsolePage) -> None:
    """A person who cancels the sign-in is not asked again. Polling goes on with another session."""
    page = paused.page
    page.evaluate(POLL, [paused.module("api.js"), "SignInCancelled"])
    page.clock.run_for(600_000)
    paused.set_hidden(False)
    assert intervals(page) == []
    page.evaluate("window.failure = ''")
    page.evaluate(USE_KEY, paused.module("auth.js"))
    page.clock.run_for(1_000)
    assert intervals(page) == [600_000, 1000]


def test_hidden_page_does_not_look_for_the_server(console: ConsolePage) -> None:
    """While the server is away a hidden page sends nothing; when it is shown it finds the server again."""
    page = console.page
    probes: list[str] = []
    page.clock.install(time=0)
    console.open("try_it/jsonrpc")
    expect(page.get_by_role("link", name="system/caller")).to_be_visible()  # no answer is on its way
    page.clock.pause_at(3600)
    page.route("**/jsonrpc", lambda route: route.abort())
    page.on("request", lambda request: probes.append(request.url) if request.url.endswith("/health") else None)
    page.route("**/health", lambda route: route.abort())
    console.set_hidden(True)
    page.get_by_role("button", name="Send").click()
    banner = page.get_by_role("status").filter(has_text="cannot be reached")
    expect(banner).to_be_visible()
    page.clock.run_for(120_000)
    page.evaluate("fetch('/openapi.json')")  # requests that were sent before it are known now
    assert probes == []
    page.unroute("**/health")
    console.set_hidden(False)
    expect(banner).to_have_count(0)


def test_late_answer_does_not_replace_a_newer_one(console: ConsolePage) -> None:
    """After a reload, the answer to the load before it is ignored."""
    console.open("connect")
    assert console.page.evaluate(LATE, console.module("components/data.js")) == "newer"


def test_connection_lost_within_an_answer_is_an_error(console: ConsolePage) -> None:
    """After half an answer the page says that the server cannot be reached, and loads again on request."""
    console.page.add_init_script(CUT)
    page = console.open("try_it")
    expect(page.locator("main").get_by_role("alert")).to_contain_text("The server cannot be reached.")
    page.evaluate("window.cut = false")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("link", name="system/caller")).to_be_visible()


def test_answer_of_a_gateway_is_an_error(console: ConsolePage) -> None:
    """A page of HTML with status 502 is shown as a failure of the server, and can be tried again."""
    console.page.route("**/openapi.json", lambda route: route.fulfill(status=502, body="<h1>Bad Gateway</h1>"))
    page = console.open("try_it")
    expect(page.locator("main").get_by_role("alert")).to_contain_text("no valid answer (status 502)")
    page.unroute("**/openapi.json")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("link", name="system/caller")).to_be_visible()


@pytest.mark.parametrize(
    ("address", "content"),
    [
        ("start", ".card.count"),
        ("documents/offline", "article"),
        ("ask?q=ferns", ".ask ~ div :is(.answer, .empty)"),
        ("conversations", "[href='#/conversations/offline']"),
        ("conversations/offline", ".message"),
        ("knowledge", ".paged .empty, .paged li"),
        ("experiences?q=ferns", ".paged .empty, .paged li"),
        ("devices", ".paged .empty, .paged li"),
        ("devices/offline", ".device-state, .error-box:not(:has-text('reached'))"),
        ("try_it", ".methods li"),
    ],
)
def test_page_without_connection_says_so_and_recovers(
    console: ConsolePage, context: BrowserContext, server: KhoServer, address: str, content: str
) -> None:
    """Without a connection each page shows the error; it is complete after the connection is back."""
    api = ApiClient(server, None)
    server.post(
        "/agent-data/create_document", b'{"document_id": "offline", "parent_id": "root", "content": {"body": "x"}}'
    )
    api.result("memory-server/memory/add_message", conversation_id="offline", role="user", content="x")
    page = console.open(address.split("?", maxsplit=1)[0].split("/", maxsplit=1)[0])  # its modules are loaded
    page.get_by_role("link", name="Connect", exact=True).click()
    expect(page.get_by_role("heading", name="Connect", exact=True)).to_be_visible()
    console.settle()
    context.set_offline(True)
    page.evaluate("address => { location.hash = address }", f"#/{address}")
    main = page.locator("main")
    if address.startswith("ask"):
        main.get_by_role("button", name="Ask", exact=True).click()
    failures = main.get_by_role("alert").filter(has_text="cannot be reached")
    expect(failures.first).to_be_visible()
    context.set_offline(False)
    retry = main.get_by_role("button", name="Try again")

    def is_recovered() -> bool:
        # A page that retries by itself removes the button. A list next to the content has its own button.
        retry.evaluate_all("buttons => buttons[0]?.click()")
        return bool(main.locator(content).count()) and not failures.count()

    until(is_recovered)
    console.settle()
    expect(failures).to_have_count(0)
