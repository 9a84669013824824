"""Pages of the console with what is hard to show: many tools, long names, large texts, doubt and conflicts."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from infra.local.iot.simulator.device import DeviceModel
from infra.local.iot.simulator.fleet import Fleet
from infra.local.iot.simulator.quirks import FIRMWARE, Quirk
from infra.local.iot.simulator.tools import SimulatedTool, standard_tools
from tests.helpers.wait import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from tests.helpers.kho_server import KhoServer
    from tests.suites.browser.console_page import ConsolePage

    Case = Callable[[ConsolePage, KhoServer], AbstractContextManager[None]]

LONG_ID: Final = "greenhouse-" + "controller-of-the-north-wing-" * 3
LONG_TITLE: Final = "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen " * 3
LARGE_BYTES: Final = 2 * 1024 * 1024
PARAGRAPH: Final = (
    "Ferns are watered in the morning, because the sun would burn their wet leaves at noon. Vào mùa khô, đất được "
    "kiểm tra hai lần mỗi ngày.\n\n"
)
EXPERIENCES: Final = (
    ("A hook reads an old value in a callback", ["react", "usestate", "closure"]),
    (
        "Kết nối MQTT bị ngắt sau mỗi lần khởi động lại bộ định tuyến, và thiết bị không tự kết nối lại",
        ["mqtt", "esp32", "mạng-không-dây"],
    ),
    ("ResizeObserverLoopCompletedWithUndeliveredNotificationsIsLoggedOnEachLayoutOfTheDashboard", ["browser"]),
    ("Callback of a timer sees the first render's value", [f"keyword-number-{number}" for number in range(20)]),
    ("Value is old", ["x"]),
)


@contextmanager
def device_with_many_tools(tab: ConsolePage, server: KhoServer) -> Iterator[None]:
    """Show a device with a long id, 53 tools, an open tool with its result, and long notifications."""
    with _connected(server, LONG_ID) as fleet:
        page = tab.open(f"devices/{LONG_ID}")
        page.get_by_text("53 tools").wait_for()
        fleet.do(lambda: fleet[LONG_ID].notify("notifications/state_changed", reason="humidity " * 40, level=17))
        page.get_by_role("log").get_by_text("state_changed").first.wait_for()
        tools = page.locator("details.tool summary")
        for index in (0, 1, 2):
            tools.nth(index).click()
        page.get_by_role("button", name="Run get_device_status").click()
        page.get_by_text("Done").first.wait_for()
        yield


@contextmanager
def device_with_notifications(tab: ConsolePage, server: KhoServer) -> Iterator[None]:
    """Show what follows the tools: the form of an alert, and notifications with long content."""
    with _connected(server, "talkative", tools=standard_tools()[1:3]) as fleet:
        page = tab.open("devices/talkative")
        for number in range(12):
            fleet.do(lambda: fleet["talkative"].notify(f"notifications/{'state_' * number}changed", reason="dry " * 60))  # noqa: B023
        page.get_by_role("log").get_by_text("state_").nth(8).wait_for()
        yield


@contextmanager
def devices_with_long_names(tab: ConsolePage, server: KhoServer) -> Iterator[None]:
    """Show a list of devices with short, long and unbroken names, connected and offline."""
    with _connected(server, "w" * 100):
        pass
    with _connected(server, LONG_ID, "lamp", "bộ-điều-khiển-nhà-kính-phía-bắc"):
        page = tab.open("devices")
        page.locator(".device-card").nth(3).wait_for()
        yield


@contextmanager
def call_in_doubt(tab: ConsolePage, server: KhoServer) -> Iterator[None]:
    """Show a tool whose device has vanished during the call."""
    tools = [each for each in standard_tools() if each.name in ("self.get_device_status", "self.screen.set_theme")]
    with _connected(server, "doubtful", tools=tools, quirk=Quirk.VANISH):
        page = tab.open("devices/doubtful")
        page.get_by_role("button", name="Run get_device_status").click()
        page.locator(".doubt").wait_for()
        yield


@contextmanager
def long_names_in_the_tree(tab: ConsolePage, server: KhoServer) -> Iterator[None]:
    """Show a document at the end of a path of long titles."""
    parent = "root"
    for depth in range(6):
        id_ = f"depth-{depth}"
        _make(server, id_, parent, PARAGRAPH, f"{depth} {LONG_TITLE}")
        parent = id_
    _make(server, "deep", parent, PARAGRAPH, LONG_TITLE)
    page = tab.open("documents/deep")
    page.locator("[role=treeitem][aria-selected=true]").wait_for()
    yield


@contextmanager
def wide_markdown(tab: ConsolePage, server: KhoServer) -> Iterator[None]:
    """Show a table, code and a word that are wider than the page."""
    table = "| " + " | ".join(f"column number {each}" for each in range(12)) + " |\n" + "|---" * 12 + "|\n"
    table += ("| " + " | ".join(["`a_value_without_a_break`"] * 12) + " |\n") * 3
    body = f"# A wide table\n\n{table}\n\n```\n{'code that does not wrap ' * 12}\n```\n\n> {PARAGRAPH}\n{'w' * 300}\n"
    _make(server, "wide", "root", body, "Wide")
    tab.open("documents/wide").locator("article table").wait_for()
    yield


@contextmanager
def large_document(tab: ConsolePage, server: KhoServer) -> Iterator[None]:
    """Show a document of 2 MiB."""
    _make_large(server)
    tab.open("documents/large").get_by_text("Ferns are watered").first.wait_for()
    yield


@contextmanager
def editor_of_a_large_document(tab: ConsolePage, server: KhoServer) -> Iterator[None]:
    """Show the editor of a document of 2 MiB, which edits it in parts."""
    _make_large(server)
    page = tab.open("documents/large?view=edit")
    page.get_by_label("Part of the text").wait_for()
    yield


@contextmanager
def history_of_a_large_document(tab: ConsolePage, server: KhoServer) -> Iterator[None]:
    """Show the revisions of a document of 2 MiB, and the difference of two."""
    _make_large(server)
    body = server.call("agent-data/get_document", document_id="large")["content"]["body"]
    patch = {"content": {"body": body.replace("at noon", "at twelve", 2)}}
    server.call("agent-data/update_document", document_id="large", patch=patch)
    page = tab.open("documents/large?view=history&from=1&to=2")
    page.locator(".diff ins").first.wait_for()
    yield


@contextmanager
def conflict(tab: ConsolePage, server: KhoServer) -> Iterator[None]:
    """Show the difference of two edits of one document."""
    lines = [f"{number}. {PARAGRAPH.strip()}" for number in range(40)]
    _make(server, "shared", "root", "\n".join(lines), "Watering plan")
    page = tab.open("documents/shared?view=edit")
    mine, theirs = lines.copy(), lines.copy()
    mine[3], mine[30] = "3. Ferns are watered in the evening.", "30. " + "mine" * 60
    theirs[3:5], theirs[30] = ["3. Ferns are never watered."], "30. " + "theirs" * 40
    page.get_by_label("Text", exact=True).fill("\n".join(mine))
    patch = {"content": {"body": "\n".join(theirs)}}
    server.call("agent-data/update_document", document_id="shared", patch=patch)
    page.get_by_role("button", name="Save").click()
    page.get_by_role("dialog").locator("del").first.wait_for()
    yield
    page.evaluate("localStorage.clear()")


@contextmanager
def experiences(tab: ConsolePage, server: KhoServer) -> Iterator[None]:
    """Show the results of a search, with long and short titles and many keywords."""
    for title, keywords in EXPERIENCES:
        server.call(
            "recall-kit/submit_experience",
            title=title,
            problem_description=f"A callback reads an old value: {title}.",
            solution="Name the value in the callback's dependencies. " * (1 + len(keywords) // 2),
            keywords=keywords,
        )
    page = tab.page

    def is_found() -> bool:
        tab.open("experiences?q=callback old value")
        page.reload()
        page.wait_for_selector("main h1")
        tab.settle()
        results: int = page.locator(".paged article").count()
        return results >= len(EXPERIENCES)

    until(is_found)
    yield


@contextmanager
def experience(tab: ConsolePage, server: KhoServer) -> Iterator[None]:
    """Show an experience with a long title, wide context and many keywords."""
    submitted = server.call(
        "recall-kit/submit_experience",
        title=EXPERIENCES[2][0] + " " + LONG_TITLE[:80],
        problem_description="The browser logs `ResizeObserver loop completed`.\n\n- once\n- for each frame",
        root_cause="The handler changes what it observes.",
        solution=f"Change it in the next frame:\n\n```js\n{'requestAnimationFrame(() => update()); ' * 5}\n```",
        context="observer.observe(document.querySelector('main')); // " + "x" * 200,
        keywords=EXPERIENCES[3][1],
    )
    tab.open(f"experiences/{submitted['data']['id']}").get_by_text("Change it in the next frame").wait_for()
    yield


CASES: Final[dict[str, Case]] = {
    "device_with_many_tools": device_with_many_tools,
    "device_with_notifications": device_with_notifications,
    "devices_with_long_names": devices_with_long_names,
    "call_in_doubt": call_in_doubt,
    "long_names_in_the_tree": long_names_in_the_tree,
    "wide_markdown": wide_markdown,
    "large_document": large_document,
    "editor_of_a_large_document": editor_of_a_large_document,
    "history_of_a_large_document": history_of_a_large_document,
    "conflict": conflict,
    "experiences": experiences,
    "experience": experience,
}


@contextmanager
def _connected(
    server: KhoServer, *ids: str, tools: list[SimulatedTool] | None = None, quirk: Quirk = Quirk.SUBSCRIBES
) -> Iterator[Fleet]:
    with Fleet("127.0.0.1", server.mqtt_port, list(ids), DeviceModel(tools=tools, quirks=FIRMWARE | {quirk})) as fleet:
        fleet.start()
        for id_ in ids:
            until(lambda: server.call("device-server/devices/get", device_id=id_)["connected"])  # noqa: B023
        yield fleet


def _make(server: KhoServer, id_: str, parent: str, body: str, title: str) -> None:
    server.call(
        "agent-data/create_document",
        document_id=id_,
        parent_id=parent,
        content={"mime_type": "text/markdown", "body": body},
        metadata={"title": title, "tags": ["vận hành", "t" * 60]},
    )


def _make_large(server: KhoServer) -> None:
    """Create the document if it is absent. Most of its lines are blanks: nothing is embedded for minutes."""
    if "result" in server.rpc(
        {"jsonrpc": "2.0", "id": 1, "method": "agent-data/get_document", "params": {"document_id": "large"}}
    ):
        return
    text = PARAGRAPH * 100
    _make(
        server, "large", "root", text + ("\u2003" * 32 + "\n") * ((LARGE_BYTES - len(text.encode())) // 97 - 1), "Log"
    )
