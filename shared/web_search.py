"""Searching the web behind one small interface; DuckDuckGo, by `ddgs`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import parse_qs, urljoin, urlsplit

from shared.config import config
from shared.rpc.errors import ToolFailed
from shared.telemetry import logger

BUDGET_SECONDS: Final = 8
"""The whole of a search, from the connection to the last byte of the page."""
_REFUSALS: Final = (202, 403, 429)
"""202 comes with a challenge, for those whom DuckDuckGo takes for robots."""


@dataclass(frozen=True, slots=True)
class WebResult:
    """One page that was found."""

    title: str
    content: str
    link: str


class WebSearch(Protocol):
    """Finds pages on the web."""

    def search(self, query: str, count: int, *, seconds: float = math.inf) -> list[WebResult]:
        """Return at most `count` pages, best first, or raise `ToolFailed`, within `seconds`."""


class DuckDuckGo:
    """DuckDuckGo's search, which takes at most `longest` seconds."""

    def __init__(self, proxy: str = "", ca_file: str = "", *, longest: float = BUDGET_SECONDS) -> None:
        self._longest = longest
        self._proxy = proxy or None
        self._verify: bool | str = ca_file or True

    def search(self, query: str, count: int, *, seconds: float = math.inf) -> list[WebResult]:
        """Return at most `count` pages, best first, or raise `ToolFailed`, within `seconds`."""
        page = self._page(query, max(1, round(min(self._longest, seconds))))
        if _is_challenge(page):
            raise _failed("DuckDuckGo asks to prove that a person is searching.")
        results = _results(page)
        if not results and not page.find_class("no-results"):
            raise _failed("DuckDuckGo answered with a page that holds no search results.")
        return results[:count]

    def _page(self, query: str, seconds: int) -> Any:
        """The page of results, as a tree of elements."""
        from ddgs.engines.duckduckgo import Duckduckgo
        from ddgs.exceptions import DDGSException, TimeoutException
        from lxml import etree, html  # type: ignore[import-untyped]
        from primp import PrimpError

        try:
            # The library reads pages too, but loses results without a text, decodes links
            # until they lead elsewhere, and takes a refusal for nothing found.
            engine = Duckduckgo(proxy=self._proxy, timeout=seconds, verify=self._verify)
            asked = engine.build_payload(query, region="wt-wt", safesearch="moderate", timelimit=None)
            response = engine.http_client.request(engine.search_method, engine.search_url, data=asked)
        except TimeoutException:
            raise _failed(f"DuckDuckGo did not answer within {seconds} s.") from None
        except DDGSException as error:
            raise _failed("The connection to DuckDuckGo failed.", reason=str(error)) from None
        except PrimpError as error:
            raise _failed("The settings of the search's proxy cannot be used.", reason=str(error)) from None
        if response.status_code != 200:
            did = "refuses to search for us now" if response.status_code in _REFUSALS else "is failing"
            raise _failed(f"DuckDuckGo {did} (HTTP {response.status_code}).")
        try:
            return html.document_fromstring(response.content, parser=html.HTMLParser(encoding="utf-8"))
        except etree.LxmlError:
            raise _failed("DuckDuckGo answered with an empty page.") from None


def web_search() -> WebSearch:
    """The search that the settings ask for."""
    settings = config()
    return DuckDuckGo(settings.search_proxy, settings.search_ca, longest=BUDGET_SECONDS)


def _failed(message: str, *, reason: str = "") -> ToolFailed:
    logger.warning("search", extra={"failure": message, "reason": reason})
    return ToolFailed(
        message,
        details={"tool": "duckduckgo_search"},
        guidance="Try again in a minute, or answer without the web.",
    )


def _is_challenge(page: Any) -> bool:
    return bool(page.xpath("//*[contains(@class, 'anomaly-modal')] | //form[@id='challenge-form']"))


def _results(page: Any) -> list[WebResult]:
    """What the page lists, without advertisements."""
    found = []
    for result in page.find_class("result"):
        titles, contents = result.find_class("result__a"), result.find_class("result__snippet")
        link = _target(titles[0].get("href", "")) if titles else ""
        if link:
            found.append(WebResult(_text(titles[0]), _text(contents[0]) if contents else "", link))
    return found


def _text(element: Any) -> str:
    return " ".join(element.text_content().split())


def _target(href: str) -> str:
    """Where a result leads, out of DuckDuckGo's own redirection; nowhere for an advertisement."""
    try:
        url = urlsplit(urljoin("https://duckduckgo.com/", href))
        if url.hostname == "duckduckgo.com" and url.path == "/l/":
            url = urlsplit(parse_qs(url.query).get("uddg", [""])[0])
    except ValueError:
        return ""
    is_advertisement = url.hostname == "duckduckgo.com" and url.path == "/y.js"
    return url.geturl() if url.scheme in ("http", "https") and not is_advertisement else ""
