"""`make screenshots`: pictures of the console's pages with the sample, in docs/console/."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from infra.local.template import FILE
from tests.browser.installation import chromium, environment, fetch

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.console_page import ConsolePage

TARGET: Final = FILE.parent / "docs" / "console"
PAGES: Final = {
    "start": "start",
    "connect": "connect",
    "documents": "documents/sample-watering",
    "ask": "ask",
    "conversations": "conversations/sample-greenhouse",
    "knowledge": "knowledge/sample-plants",
    "experiences": "experiences",
    "devices": "devices",
    "try_it": "try_it/agent-data/query_knowledge",
}
SIZES: Final = {"wide": (1280, 860, "light"), "narrow": (360, 740, "dark")}


def main() -> None:
    """Take all pictures."""
    from playwright.sync_api import expect, sync_playwright

    from tests.browser.console_page import ConsolePage
    from tests.helpers.kho_server import KhoServer

    TARGET.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kho-screenshots-") as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), chromium_sandbox=False)
        with KhoServer(Path(folder) / "data") as server:
            tab = ConsolePage(browser.new_context(locale="en-GB"), server.address)
            page = tab.open()
            page.get_by_role("button", name="Load a sample").click()
            expect(page.get_by_text("Now look at:")).to_be_visible(timeout=60_000)
            for name, address in PAGES.items():
                _show(tab, name, address)
                for size, (width, height, theme) in SIZES.items():
                    page.set_viewport_size({"width": width, "height": height})
                    tab.set_theme(theme)
                    tab.settle()
                    page.wait_for_load_state("networkidle")
                    page.screenshot(path=TARGET / f"{name}-{size}.png")
        browser.close()


def _show(tab: ConsolePage, name: str, address: str) -> None:
    width, height, _ = SIZES["wide"]
    tab.page.set_viewport_size({"width": width, "height": height})
    page: Page = tab.open(address)
    tab.settle()
    if name == "ask":
        page.get_by_role("textbox").first.fill("When are ferns watered?")
        page.get_by_role("button", name="Ask").first.click()
        page.wait_for_load_state("networkidle")
    if name == "devices":
        page.get_by_role("link", name="Desk lamp").click()
        page.get_by_role("button", name="Claim a board").wait_for(state="hidden")
    if name == "try_it":
        page.get_by_role("button", name="Send", exact=True).wait_for()


if __name__ == "__main__":
    if "--run" in sys.argv:
        main()
    else:
        fetch()
        command = [sys.executable, "-m", "tests.browser.screenshots", "--run"]
        sys.exit(subprocess.run(command, check=False, env=environment()).returncode)
