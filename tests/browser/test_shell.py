"""The console's shell: languages, themes, widths, navigation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.console_page import THEMES, WIDTHS

if TYPE_CHECKING:
    from tests.browser.console_page import ConsolePage

PAGES = ("start", "connect", "documents", "ask", "conversations", "knowledge", "experiences", "devices", "try_it")


@pytest.mark.parametrize("name", PAGES)
def test_page_is_accessible_at_every_width_and_theme(console: ConsolePage, name: str) -> None:
    """Every page has no violation that axe-core knows, and fits the window, at three widths in both themes."""
    console.open(name)
    for theme in THEMES:
        console.set_theme(theme)
        for width in WIDTHS:
            console.set_width(width)
            console.settle()
            assert console.violations() == [], (theme, width)
            assert console.overflow() <= 0, (theme, width)
