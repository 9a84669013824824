"""The console with much data: the time until a page shows its content, and the memory of the page."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from shared.aws.dynamodb import Table
from shared.devices.registry import DeviceRegistry
from tests.helpers.dynamodb import store_of
from tests.helpers.kho_server import KhoServer
from tests.helpers.store_seed import seed_children, seed_messages
from tests.suites.bench import tables as bench
from tests.suites.bench.size import sized
from tests.suites.browser.installation import PACKAGES, chromium, fetch

CHILDREN: Final = sized(50, full=10_000)
DEVICES: Final = sized(20, full=1_000)
MESSAGES: Final = sized(50, full=100_000)
LOADS: Final = sized(1, full=7)
_MEGABYTE: Final = 1 << 20
PAGES: Final = {
    f"Documents, {CHILDREN:,} children": ("documents", "[role=treeitem]"),
    f"Conversations, {MESSAGES:,} messages": ("conversations/bench", ".messages >> text=message-"),
    f"Devices, {DEVICES:,}": ("devices", "text=device-"),
    "Start, all of these": ("start", ".count"),
    "Editor, 2 MiB": ("documents/large?view=edit", "textarea"),
}
"""The address of each page, and its first content."""


def tables() -> list[bench.BenchTable]:
    """Fill a server, and load each page."""
    fetch()
    sys.path.append(str(PACKAGES))
    with tempfile.TemporaryDirectory(prefix="kho-bench-") as folder, KhoServer(Path(folder) / "data") as server:
        rows = _loads(server.address, _fill(server))
    columns = ["page", "first content, median", "first content, slowest", "JavaScript heap", "elements"]
    notes = [
        f"Chromium without a window, {LOADS} loads each without a cache, on the machine that also serves. First "
        "content: from the navigation to the first entry of the list. The heap is measured after a garbage collection."
    ]
    return [bench.BenchTable("Console: pages with much data", columns, rows, notes)]


def _fill(server: KhoServer) -> str:
    """Fill the server. Return the id of the last document."""
    # Through the methods, 100,000 messages take several minutes; how they are written is not the subject. Documents
    # without text are not embedded: the index is not the subject either.
    children = seed_children(server.data, "local", "root", CHILDREN)
    seed_messages(server.data, "local", "bench", MESSAGES)
    line = "\u2003" * 10 + "\n"  # blanks: what it takes to embed a text is not the subject
    body = line * (2 * _MEGABYTE // len(line.encode()))
    server.call("agent-data/create_document", document_id="large", parent_id=children[0], content={"body": body})
    with store_of(server.data):
        registry = DeviceRegistry(Table("kho-DevicesTable"))
        for number in range(DEVICES):
            registry.register("local", f"device-{number:04}")
    return children[-1]


def _loads(address: str, last_child: str) -> list[list[str]]:
    from playwright.sync_api import sync_playwright

    rows = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), chromium_sandbox=False)
        last = f"Documents, the last of {CHILDREN:,}"
        pages = PAGES | {last: (f"documents/{last_child}", "[role=treeitem][aria-selected=true]")}
        for name, (path, content) in pages.items():
            times = []
            for _ in range(LOADS):
                page = browser.new_context(locale="en-GB").new_page()
                started = time.perf_counter()
                page.goto(f"{address}/console/#/{path}")
                page.locator(content).first.wait_for(timeout=60_000)
                times.append(time.perf_counter() - started)
                page.wait_for_load_state("networkidle")
                session = page.context.new_cdp_session(page)
                session.send("HeapProfiler.collectGarbage")
                heap = session.send("Runtime.getHeapUsage")["usedSize"] / _MEGABYTE
                elements = page.evaluate("document.querySelectorAll('*').length")
                page.context.close()
            median, slowest = statistics.median(times) * 1000, max(times) * 1000
            rows.append([name, f"{median:.0f} ms", f"{slowest:.0f} ms", f"{heap:.1f} MB", f"{elements:,}"])
        browser.close()
    return rows
