"""The console with much data: the time until a page shows its content, and the memory of the page."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import boto3

from infra.local.data_folder import read_server_info
from shared import dynamodb
from shared.devices.registry import DeviceRegistry
from tests.bench import tables as bench
from tests.bench.size import sized
from tests.browser.installation import PACKAGES, chromium, fetch
from tests.helpers.dynamodb import tcp_url
from tests.helpers.kho_server import KhoServer

if TYPE_CHECKING:
    from collections.abc import Sequence

CHILDREN: Final = sized(50, full=10_000)
DEVICES: Final = sized(20, full=1_000)
MESSAGES: Final = sized(50, full=100_000)
LOADS: Final = sized(1, full=7)
_BATCH: Final = 50
_CALLERS: Final = 4
_MEGABYTE: Final = 1 << 20
PAGES: Final = {
    f"Documents, {CHILDREN:,} children": ("documents", "[role=treeitem]"),
    f"Conversations, {MESSAGES:,} messages": ("conversations/bench", "text=message-"),
    f"Devices, {DEVICES:,}": ("devices", "text=device-"),
    "Start, all of these": ("start", ".count"),
}
"""The address of each page, and its first content."""


def tables() -> list[bench.BenchTable]:
    """Fill a server, and load each page."""
    fetch()
    sys.path.append(str(PACKAGES))
    with tempfile.TemporaryDirectory(prefix="kho-bench-") as folder, KhoServer(Path(folder) / "data") as server:
        _fill(server)
        rows = _loads(server.address)
    columns = ["page", "first content, median", "first content, slowest", "JavaScript heap", "elements"]
    notes = [
        f"Chromium without a window, {LOADS} loads each without a cache, on the machine that also serves. First "
        "content: from the navigation to the first entry of the list. The heap is measured after a garbage collection."
    ]
    return [bench.BenchTable("Console: pages with much data", columns, rows, notes)]


def _fill(server: KhoServer) -> None:
    # Documents without text are not embedded: the index is not the subject.
    documents = [
        {"document_id": f"child-{number}", "parent_id": "root", "content": {"body": ""}} for number in range(CHILDREN)
    ]
    messages = [
        {"conversation_id": "bench", "role": "user", "content": f"message-{number}"} for number in range(MESSAGES)
    ]
    calls: list[tuple[str, dict[str, Any]]] = [("agent-data/create_document", each) for each in documents]
    calls += [("memory-server/memory/add_message", each) for each in messages]
    batches = [calls[start : start + _BATCH] for start in range(0, len(calls), _BATCH)]
    with ThreadPoolExecutor(_CALLERS) as pool:
        list(pool.map(lambda batch: _send(server, batch), batches))
    info = read_server_info(server.data)
    assert info
    anyone = boto3.Session("local", "local", region_name="us-east-1")
    dynamodb.override_client(anyone.client("dynamodb", endpoint_url=tcp_url(info["store_url"])))
    registry = DeviceRegistry(dynamodb.Table("kho-DevicesTable"))
    for number in range(DEVICES):
        registry.register("local", f"device-{number:04}")
    dynamodb.override_client(None)


def _send(server: KhoServer, batch: Sequence[tuple[str, dict[str, Any]]]) -> None:
    requests = [
        {"jsonrpc": "2.0", "method": method, "params": params, "id": number}
        for number, (method, params) in enumerate(batch)
    ]
    answers = json.loads(server.post("/jsonrpc", json.dumps(requests).encode()).data)
    assert all("result" in each for each in answers), answers


def _loads(address: str) -> list[list[str]]:
    from playwright.sync_api import sync_playwright

    rows = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), chromium_sandbox=False)
        for name, (path, content) in PAGES.items():
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
