"""Calls of a page that wait until the test lets them go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.helpers.wait import until

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route


class HeldCalls:
    """The calls of one method, in the order in which the page sends them."""

    def __init__(self, page: Page, method: str) -> None:
        self._page = page
        self._routes: list[Route] = []
        page.route(f"**/{method}", self._hold)

    @property
    def waiting(self) -> int:
        """Return how many calls wait now."""
        self._page.evaluate("true")  # the browser reports calls only while it is used
        return len(self._routes)

    def release(self) -> None:
        """Wait for a call, and let the first one go on."""
        until(lambda: self.waiting)
        self._routes.pop(0).continue_()

    def _hold(self, route: Route) -> None:
        self._routes.append(route)
