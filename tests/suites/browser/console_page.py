"""A page of the console in the browser, with what must hold on each: own origin alone, and no violated policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from infra.clients.console.bundle import HERE
from tests.helpers.wait import CEILING_SECONDS, until
from tests.suites.browser.installation import AXE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playwright.sync_api import BrowserContext, Page, Request

PAGES: Final = tuple(sorted(each.stem for each in (HERE / "pages").glob("*.js")))
"""The names of the console's pages."""
WIDTHS: Final = (360, 768, 1280)
THEMES: Final = ("light", "dark")
_HEIGHT: Final = 900
_HIDE: Final = """hidden => {
  Object.defineProperty(document, "hidden", { get: () => hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
_RULES: Final = {"resultTypes": ["violations"]}


class ConsolePage:
    """One tab with the console."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.address = address
        self.page: Page = context.new_page()
        self.page.set_default_timeout(CEILING_SECONDS * 1000)
        self.foreign: list[str] = []
        """The requests to other origins."""
        self.problems: list[str] = []
        """The errors in the browser's console, with violations of the policy, and exceptions."""
        self.page.on("request", self._note_request)
        self.page.on("console", lambda message: self._note_problem(message.type, message.text))
        self.page.on("pageerror", lambda error: self.problems.append(f"exception: {error}"))

    def open(self, path: str = "start") -> Page:
        """Open a page of the console by its address, such as `documents/<id>`, and wait until it is there."""
        self.page.goto(f"{self.address}/console/#/{path}")
        self.page.wait_for_selector("main h1")
        return self.page

    def set_width(self, width: int) -> None:
        """Set the width of the window."""
        self.page.set_viewport_size({"width": width, "height": _HEIGHT})

    def set_theme(self, theme: str) -> None:
        """Set the theme that the system prefers."""
        self.page.emulate_media(color_scheme="dark" if theme == "dark" else "light")

    def tab_to(self, role: str, name: str, *, most: int = 200) -> None:
        """Press Tab until the element with this role and accessible name has the focus."""
        wanted = self.page.get_by_role(role, name=name, exact=True)  # type: ignore[arg-type,unused-ignore]
        wanted.first.wait_for()
        for _ in range(most):
            self.page.keyboard.press("Tab")
            if any(
                wanted.nth(index).evaluate("each => each === document.activeElement") for index in range(wanted.count())
            ):
                return
        raise AssertionError(f"Tab never reaches the {role} {name!r}")

    def module(self, name: str) -> str:
        """Return the address of one of the console's modules, such as `api.js`."""
        app = self.page.locator("script[type=module]").get_attribute("src")
        assert app
        return f"/console/{app.removeprefix('./').removesuffix('app.js')}{name}"

    def set_hidden(self, hidden: bool) -> None:
        """Hide the page as another tab does, or show it again."""
        self.page.evaluate(_HIDE, hidden)

    def violations(self) -> list[str]:
        """Return what axe-core finds on the page as it is."""
        if not self.page.evaluate("Boolean(window.axe)"):
            # By the debugger, which the page's policy does not bind.
            self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found: Any = self.page.evaluate("options => axe.run(document, options)", _RULES)
        return [
            f"{each['id']}: {each['help']}: {[node['target'] for node in each['nodes']][:5]}"
            for each in found["violations"]
        ]

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than the window."""
        width: int = self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        return width

    def faults(self, widths: Sequence[int] = WIDTHS, themes: Sequence[str] = THEMES) -> list[str]:
        """Return what is wrong with the page at any of these widths in any of these themes."""
        problems = []
        for theme in themes:
            self.set_theme(theme)
            for width in widths:
                self.set_width(width)
                self.settle()
                problems += [f"{theme} {width}: {each}" for each in self.violations()]
                if self.overflow() > 0:
                    problems.append(f"{theme} {width}: {self.overflow()} pixels too wide")
        return problems

    def settle(self) -> None:
        """Wait until the page loads nothing."""
        busy = "document.querySelector('[aria-busy=true]') !== null"
        until(lambda: not self.page.evaluate(busy))

    def search_until_found(self, link: str) -> None:
        """Repeat the search until this link is among the results: things are indexed after they are written."""

        def is_found() -> bool:
            self.page.get_by_role("button", name="Search", exact=True).click()
            self.settle()
            results: int = self.page.get_by_role("link", name=link).count()
            return results > 0

        until(is_found)

    def _note_request(self, request: Request) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.foreign.append(request.url)

    def _note_problem(self, kind: str, text: str) -> None:
        # Chromium logs each response of 400 and above as an error; those are the test's subject or fail it otherwise.
        if kind == "error" and not text.startswith("Failed to load resource"):
            self.problems.append(text)
