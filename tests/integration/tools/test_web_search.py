"""Web search through ddgs's own transport: the result of each possible answer of DuckDuckGo, or of none."""

from __future__ import annotations

import inspect
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import pytest

from shared.rpc.errors import ToolFailed
from shared.web_search import DuckDuckGo, WebResult
from tests.helpers.duckduckgo import DuckDuckGoProxy, duckduckgo, listener, refuse, reset, silent
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FAILURES: Final = {
    "challenge": "refuses to search for us now (HTTP 202)",
    "challenge with status 200": "a person is searching",
    "home page": "without search results",
    "only advertisements": "without search results",
    "403": "refuses to search for us now (HTTP 403)",
    "429": "refuses to search for us now (HTTP 429)",
    "500": "is failing (HTTP 500)",
    "empty": "empty page",
    "blank": "empty page",
    "garbage": "without search results",
    "not HTML": "without search results",
    "not HTTP": "connection to DuckDuckGo failed",
    "redirection to itself": "connection to DuckDuckGo failed",
    "break off": "connection to DuckDuckGo failed",
    "reset": "connection to DuckDuckGo failed",
}
SLOW: Final = ("silent", "trickle", "trickle head")


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDuckGoProxy]:
    """Yield DuckDuckGo on loopback."""
    with duckduckgo(tmp_path_factory.mktemp("duckduckgo")) as running:
        yield running


@pytest.fixture
def search(proxy: DuckDuckGoProxy) -> DuckDuckGo:
    """Return a search through the proxy."""
    return DuckDuckGo(proxy.address, str(proxy.authority), max_seconds=CEILING_SECONDS)


def failure(search: DuckDuckGo, query: str = "sâu răng", **limit: float) -> ToolFailed:
    """Return the failure of one search."""
    with pytest.raises(ToolFailed) as raised:
        search.search(query, 5, **limit)
    return raised.value


def test_results_are_parsed(search: DuckDuckGo) -> None:
    assert search.search("sâu răng nguyên nhân", 5) == [
        WebResult(
            "Sâu răng: Nguyên nhân, triệu chứng & cách điều trị",
            "Sâu răng là tình trạng tổn thương mô cứng của răng do vi khuẩn. "
            "Nguyên nhân gồm đường, mảng bám & vệ sinh kém…",
            "https://www.vinmec.com/vi/bai-viet/sau-rang-nguyen-nhan-trieu-chung-vi",
        ),
        WebResult(
            "Sâu răng – Wikipedia tiếng Việt",
            "Streptococcus mutans & Lactobacilli sinh axít làm mòn men răng.",
            "https://vi.wikipedia.org/wiki/S%C3%A2u_r%C4%83ng",
        ),
        # Without its own text, and with a link that must stay encoded to work.
        WebResult("Chỉ số <DMFT> là gì?", "", "https://nhakhoa.example/tim?q=r%C4%83ng%26l%E1%BB%A3i%23s%C3%A2u%2F2"),
        # Resolved from DuckDuckGo's redirect link.
        WebResult(
            "蛀牙（龋齿）- 维基百科",
            "蛀牙是由细菌引起的牙齿硬组织疾病，𠮷祥。",
            "https://zh.wikipedia.org/wiki/%E8%9B%80%E7%89%99",
        ),
        WebResult(
            "Oral health",
            "Dental caries results when plaque forms on the surface of a tooth.",
            "https://www.who.int/news-room/fact-sheets/detail/oral-health",
        ),
    ]
    assert [each.title for each in search.search("sâu răng", 100)][5:] == ["Kết quả thứ sáu"]


@pytest.mark.parametrize(
    "query", ["sâu răng nguyên nhân", "蛀牙的原因 龋齿", "a&b=c+d %41;\n\t\0 \u202e😀", "anomaly-modal", "no-results"]
)
def test_query_is_sent_verbatim(search: DuckDuckGo, proxy: DuckDuckGoProxy, query: str) -> None:
    assert len(search.search(query, 5)) == 5
    assert query in proxy.queries
    assert set(proxy.targets) == {"html.duckduckgo.com:443"}


def test_no_results_is_a_success(search: DuckDuckGo) -> None:
    assert search.search("nothing is found", 5) == []


@pytest.mark.parametrize("query", FAILURES)
def test_failure_reports_the_cause(search: DuckDuckGo, query: str) -> None:
    error = failure(search, query)
    assert FAILURES[query] in error.message
    text = f"{error.message} {error.details} {error.guidance}".lower()
    for internal in ("primp", "ddgs", "error(", "exception", "rustls", "lxml", "os error", "127.0.0.1", "traceback"):
        assert internal not in text


def test_connection_failure(proxy: DuckDuckGoProxy, tmp_path: Path) -> None:
    trusted = str(proxy.authority)
    with (
        listener(refuse) as refusing,
        listener(reset) as resetting,
        duckduckgo(tmp_path, name="other.example") as other,
    ):
        for search in (
            DuckDuckGo("http://127.0.0.1:1", trusted, max_seconds=CEILING_SECONDS),
            DuckDuckGo(refusing, trusted, max_seconds=CEILING_SECONDS),
            DuckDuckGo(resetting, trusted, max_seconds=CEILING_SECONDS),
            DuckDuckGo(proxy.address, max_seconds=CEILING_SECONDS),  # signed by an untrusted authority
            DuckDuckGo(other.address, str(other.authority), max_seconds=CEILING_SECONDS),  # for another name
        ):
            assert failure(search).message == "The connection to DuckDuckGo failed."


@pytest.mark.parametrize(("address", "ca_file"), [("nonsense", ""), ("http://", ""), ("", "/nowhere.pem")])
def test_invalid_settings(address: str, ca_file: str) -> None:
    assert failure(DuckDuckGo(address, ca_file)).message == "The proxy settings of the search cannot be used."


def test_the_shorter_of_two_limits_ends_a_search(search: DuckDuckGo, proxy: DuckDuckGoProxy) -> None:
    """A search without an answer ends by a timeout: the caller's, or the search's own."""
    assert failure(search, "silent", seconds=1).message == "DuckDuckGo did not answer within 1 s."
    short = DuckDuckGo(proxy.address, str(proxy.authority), max_seconds=1)
    assert failure(short, "silent", seconds=CEILING_SECONDS).message == "DuckDuckGo did not answer within 1 s."


def test_slow_response_times_out(proxy: DuckDuckGoProxy) -> None:
    """A search ends at its timeout, no matter which part of the answer is missing."""
    with listener(silent) as mute, ThreadPoolExecutor() as pool:
        trusted = str(proxy.authority)
        outcomes = [pool.submit(failure, DuckDuckGo(proxy.address, trusted, max_seconds=1), query) for query in SLOW]
        outcomes.append(pool.submit(failure, DuckDuckGo(mute, trusted, max_seconds=1)))
        for outcome in outcomes:
            assert outcome.result().message == "DuckDuckGo did not answer within 1 s."


def test_a_search_takes_eight_seconds_at_most() -> None:
    assert inspect.signature(DuckDuckGo).parameters["max_seconds"].default == 8
