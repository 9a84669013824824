"""`make screenshots`: pictures of the console's pages with the sample, in docs/console/.

`python -m tests.suites.browser.screenshots --hard-cases <folder>` takes those of `hard_cases.py`, to be looked at.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from infra.local.template import FILE
from tests.suites.browser.installation import chromium, environment, fetch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playwright.sync_api import Page

    from tests.helpers.kho_server import KhoServer
    from tests.suites.browser.console_page import ConsolePage

TARGET: Final = FILE.parent / "docs" / "console"
ADDRESSES: Final = {
    "documents": "documents/sample-watering",
    "conversations": "conversations/sample-greenhouse",
    "knowledge": "knowledge/sample-plants",
    "try_it": "try_it/agent-data/query_knowledge",
}
"""The addresses of pages that show something of the sample."""
SIZES: Final = {"wide": (1280, 860, "light"), "narrow": (360, 740, "dark")}
HARD_SIZES: Final = {
    "wide": (1280, 1000, "light"),
    "dark": (1280, 1000, "dark"),
    "medium": (768, 1200, "light"),
    "narrow": (360, 1600, "dark"),
}


def main(hard_cases: Path | None) -> None:
    """Take the pictures of the sample, or those of hard cases in a folder."""
    from playwright.sync_api import sync_playwright

    from tests.helpers.kho_server import KhoServer
    from tests.suites.browser.console_page import ConsolePage

    with tempfile.TemporaryDirectory(prefix="kho-screenshots-") as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), chromium_sandbox=False)
        with KhoServer(Path(folder) / "data") as server:
            tab = ConsolePage(browser.new_context(locale="en-GB"), server.address)
            if hard_cases:
                _take_hard_cases(tab, server, hard_cases)
            else:
                _take_sample(tab)
        browser.close()


def _take_sample(tab: ConsolePage) -> None:
    from playwright.sync_api import expect

    from tests.suites.browser.console_page import PAGES

    page = tab.open()
    page.get_by_role("button", name="Load a sample").click()
    expect(page.get_by_text("Now look at:")).to_be_visible(timeout=60_000)
    for name in PAGES:
        _show(tab, name, ADDRESSES.get(name, name))
        _take(tab, TARGET, name, SIZES)


def _take_hard_cases(tab: ConsolePage, server: KhoServer, target: Path) -> None:
    from tests.suites.browser.hard_cases import CASES

    width, height, _ = HARD_SIZES["wide"]
    for name, case in CASES.items():
        tab.page.set_viewport_size({"width": width, "height": height})
        with case(tab, server):
            _take(tab, target, name, HARD_SIZES)


def _take(tab: ConsolePage, target: Path, name: str, sizes: Mapping[str, tuple[int, int, str]]) -> None:
    """Take the page as it is, in each size."""
    target.mkdir(parents=True, exist_ok=True)
    tab.page.mouse.move(0, 0)  # nothing is highlighted by chance
    for size, (width, height, theme) in sizes.items():
        tab.page.set_viewport_size({"width": width, "height": height})
        tab.set_theme(theme)
        tab.settle()
        tab.page.wait_for_load_state("networkidle")
        tab.page.screenshot(path=target / f"{name}-{size}.png")


def _show(tab: ConsolePage, name: str, address: str) -> None:
    width, height, _ = SIZES["wide"]
    tab.page.set_viewport_size({"width": width, "height": height})
    page: Page = tab.open(address)
    tab.settle()
    if name == "ask":
        page.get_by_role("textbox").first.fill("When are ferns watered?")
        page.get_by_role("button", name="Ask").first.click()
        page.locator(".answer").wait_for()
    if name == "devices":
        page.get_by_role("link", name="Desk lamp").click()
        page.get_by_role("button", name="Claim a board").wait_for(state="hidden")
    if name == "try_it":
        page.get_by_role("button", name="Send", exact=True).wait_for()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.suites.browser.screenshots", description=__doc__)
    parser.add_argument("--hard-cases", type=Path, metavar="folder", help="take the hard cases, in this folder")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        main(options.hard_cases)
    else:
        fetch()
        command = [sys.executable, "-m", "tests.suites.browser.screenshots", "--run", *sys.argv[1:]]
        sys.exit(subprocess.run(command, check=False, env=environment()).returncode)
