"""Searching the web behind one small interface; DuckDuckGo, by `ddgs`."""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from shared.config import config
from shared.rpc.errors import ToolFailed
from shared.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable

BUDGET_SECONDS: Final = 8.0


@dataclass(frozen=True, slots=True)
class WebResult:
    """One page that was found."""

    title: str
    content: str
    link: str


class WebSearch(Protocol):
    """Finds pages on the web."""

    def search(self, query: str, count: int) -> list[WebResult]:
        """At most `count` pages, best first, or `ToolFailed` with what happened."""


class DuckDuckGo:
    """DuckDuckGo's results, within eight seconds."""

    def __init__(self, proxy: str = "", ca_file: str = "") -> None:
        self._proxy = proxy or None
        self._verify: bool | str = ca_file or True

    def search(self, query: str, count: int) -> list[WebResult]:
        """At most `count` pages, best first, or `ToolFailed` with what happened."""
        outcome = _within(BUDGET_SECONDS, lambda: self._ask(query))
        if isinstance(outcome, list):
            return outcome[:count]
        logger.warning("search", extra={"failure": type(outcome).__name__})
        raise ToolFailed(
            str(outcome) if isinstance(outcome, _Refused | _Slow) else "DuckDuckGo could not be reached.",
            details={"tool": "duckduckgo_search"},
            guidance="Try again in a minute, or answer without the web.",
        )

    def _ask(self, query: str) -> list[WebResult]:
        from ddgs.engines.duckduckgo import Duckduckgo

        class Engine(Duckduckgo):
            """The library's engine; what it takes for an empty list is told apart here."""

            def request(self, method: str, url: str, data: dict[str, str]) -> str:
                response = self.http_client.request(method, url, data=data)
                if response.status_code != 200:
                    # DuckDuckGo answers 202 with a challenge to those it takes for robots.
                    raise _Refused(f"DuckDuckGo refuses to search for us now (HTTP {response.status_code}).")
                page: str = response.text
                if "anomaly-modal" in page:
                    raise _Refused("DuckDuckGo asks to prove that a person is searching.")
                if "result__" not in page and "no-results" not in page:
                    raise _Refused("DuckDuckGo answered with a page that holds no search results.")
                return page

        from ddgs.exceptions import TimeoutException

        engine = Engine(proxy=self._proxy, timeout=int(BUDGET_SECONDS), verify=self._verify)
        try:
            found = engine.search(query, region="wt-wt")
        except TimeoutException:
            raise _Slow from None
        return [WebResult(result.title, result.body, result.href) for result in found or () if result.href]


class _Refused(Exception):
    pass


class _Slow(Exception):
    def __str__(self) -> str:
        return f"DuckDuckGo did not answer within {BUDGET_SECONDS:.0f} s."


def _within(seconds: float, ask: Callable[[], list[WebResult]]) -> list[WebResult] | Exception:
    """What `ask` gives or raises; the library's own time-out does not end a page that trickles in."""
    outcome: queue.SimpleQueue[list[WebResult] | Exception] = queue.SimpleQueue()

    def run() -> None:
        try:
            outcome.put(ask())
        except Exception as error:
            outcome.put(error)

    threading.Thread(target=run, name="web-search", daemon=True).start()
    try:
        return outcome.get(timeout=seconds)
    except queue.Empty:
        return _Slow()


def web_search() -> WebSearch:
    """The search that the settings ask for."""
    settings = config()
    return DuckDuckGo(settings.search_proxy, settings.search_ca)
