"""Fixtures: a server with data, the browser, and tabs in which nothing forbidden happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.helpers.kho_server import KhoServer
from tests.helpers.wait import CEILING_SECONDS
from tests.suites.browser.console_page import ConsolePage
from tests.suites.browser.installation import chromium

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, BrowserContext

expect.set_options(timeout=CEILING_SECONDS * 1000)

_FLAGS: Final = ("gpu", "background-networking", "component-update", "sync")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KhoServer]:
    """Run an open server for all tests; each uses ids of its own."""
    with KhoServer(tmp_path_factory.mktemp("browser") / "data") as running:
        yield running


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KhoServer]:
    """Run a server that requires credentials."""
    with KhoServer(tmp_path_factory.mktemp("guarded") / "data", "--auth", "required") as server:
        yield server


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Run the browser for all tests."""
    program = chromium()
    assert program, "run this with 'make browser', which fetches it"
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=program,
            chromium_sandbox=False,
            args=["--no-first-run", *(f"--disable-{each}" for each in _FLAGS)],
        )
        yield launched
        launched.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """Return a context of its own: storage and cache are empty, and the language is English."""
    opened = browser.new_context(
        locale="en-GB", timezone_id="Asia/Ho_Chi_Minh", viewport={"width": 1280, "height": 900}
    )
    yield opened
    opened.close()


@pytest.fixture
def console(context: BrowserContext, server: KhoServer) -> Iterator[ConsolePage]:
    """Return a tab. At the end, nothing came from elsewhere and the browser reported no problem."""
    tab = ConsolePage(context, server.address)
    yield tab
    assert tab.foreign == []
    assert tab.problems == []
