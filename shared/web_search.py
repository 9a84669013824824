"""Web search: DuckDuckGo through `ddgs`."""

import math
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs, urljoin, urlsplit

from shared.platform.config import config
from shared.platform.telemetry import logger
from shared.rpc.errors import ToolFailed

BUDGET_SECONDS: Final = 8
"""Limit of a whole search, from the connection to the last byte of the page."""
_MAX_RESULTS: Final = 50
"""Results of a page that are read. A real page has thirty."""
_MAX_PAGE_BYTES: Final = 2 * 1024 * 1024
_REFUSALS: Final = (202, 403, 429)
"""DuckDuckGo sends 202 with a challenge to clients that it takes for robots."""


@dataclass(frozen=True, slots=True)
class WebResult:
    """A found web page."""

    title: str
    content: str
    link: str


class DuckDuckGo:
    """DuckDuckGo's search with a limit of `max_seconds`."""

    def __init__(self, proxy: str = "", ca_file: str = "", *, max_seconds: float = BUDGET_SECONDS) -> None:
        self._max_seconds = max_seconds
        self._proxy = proxy or None
        self._verify: bool | str = ca_file or True

    def search(self, query: str, count: int, *, seconds: float = math.inf) -> list[WebResult]:
        """Return at most `count` pages within `seconds`, best first, or raise `ToolFailed`."""
        page = self._page(query, max(1, round(min(self._max_seconds, seconds))))
        if _is_challenge(page):
            raise _failed("DuckDuckGo requires a proof that a person is searching.")
        results = _results(page)
        if not results and not page.find_class("no-results"):
            raise _failed("DuckDuckGo returned a page without search results.")
        return results[:count]

    def _page(self, query: str, seconds: int) -> Any:
        """Fetch the page of results as an element tree."""
        from ddgs.engines.duckduckgo import Duckduckgo
        from ddgs.exceptions import DDGSException, TimeoutException
        from primp import PrimpError

        try:
            # The library parses pages too. But it drops results without a text, decodes links until they point
            # elsewhere, and treats a refusal as an empty result.
            engine = Duckduckgo(proxy=self._proxy, timeout=seconds, verify=self._verify)
            payload = engine.build_payload(query, region="wt-wt", safesearch="moderate", timelimit=None)
            response = engine.http_client.request(engine.search_method, engine.search_url, data=payload)
        except TimeoutException:
            raise _failed(f"DuckDuckGo did not answer within {seconds} s.") from None
        except DDGSException as error:
            raise _failed("The connection to DuckDuckGo failed.", reason=str(error)) from None
        except PrimpError as error:
            raise _failed("The proxy settings of the search cannot be used.", reason=str(error)) from None
        if response.status_code != 200:
            problem = "refuses to search for us now" if response.status_code in _REFUSALS else "is failing"
            raise _failed(f"DuckDuckGo {problem} (HTTP {response.status_code}).")
        return parse_page(response.content)


def parse_page(content: bytes) -> Any:
    """Return a page of results as an element tree. Raise ToolFailed if it is empty or too large."""
    from lxml import etree, html  # type: ignore[import-untyped]

    if len(content) > _MAX_PAGE_BYTES:
        raise _failed("DuckDuckGo returned a page that is too large.")
    try:
        return html.document_fromstring(content, parser=html.HTMLParser(encoding="utf-8"))
    except etree.LxmlError:
        raise _failed("DuckDuckGo returned an empty page.") from None


def web_search() -> DuckDuckGo:
    """Return the configured web search."""
    settings = config()
    return DuckDuckGo(settings.search_proxy, settings.search_ca, max_seconds=BUDGET_SECONDS)


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
    """Return the results on the page, without advertisements."""
    results = []
    for result in page.find_class("result")[:_MAX_RESULTS]:
        titles, contents = result.find_class("result__a"), result.find_class("result__snippet")
        link = _target(titles[0].get("href", "")) if titles else ""
        if link:
            results.append(WebResult(_text(titles[0]), _text(contents[0]) if contents else "", link))
    return results


def _text(element: Any) -> str:
    return " ".join(element.text_content().split())


def _target(href: str) -> str:
    """Return the target of a result behind DuckDuckGo's redirection, or '' for an advertisement."""
    try:
        url = urlsplit(urljoin("https://duckduckgo.com/", href))
        if url.hostname == "duckduckgo.com" and url.path == "/l/":
            url = urlsplit(parse_qs(url.query).get("uddg", [""])[0])
    except ValueError:
        return ""
    is_advertisement = url.hostname == "duckduckgo.com" and url.path == "/y.js"
    return url.geturl() if url.scheme in ("http", "https") and not is_advertisement else ""
