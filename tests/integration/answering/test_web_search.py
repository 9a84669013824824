"""Answers from recorded web pages, if the caller allows web search."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

from tests.helpers.answer_library import PF, Ask, dropped_sources
from tests.helpers.duckduckgo import DuckDuckGoProxy, duckduckgo
from tests.helpers.model_server import reply_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.helpers.model_server import ModelServer


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDuckGoProxy]:
    """Yield DuckDuckGo on loopback."""
    with duckduckgo(tmp_path_factory.mktemp("duckduckgo")) as running:
        yield running


@pytest.fixture
def web(proxy: DuckDuckGoProxy, with_model: ModelServer, settings: Callable[..., None]) -> DuckDuckGoProxy:
    """Configure the recorded web, and return its proxy."""
    settings(KHO_SEARCH_PROXY=proxy.address, KHO_SEARCH_CA=str(proxy.authority))
    proxy.queries.clear()
    return proxy


WEB: Final = {"allow_external_search": True}


def test_web_is_searched_only_when_allowed(ask: Ask, web: DuckDuckGoProxy) -> None:
    for routing in ({}, {"allow_external_search": False}):
        assert all("source" not in each for each in ask(query=PF, routing=routing)["context"])
    assert web.queries == []


def test_web_pages_are_cited_as_web_sources(ask: Ask, web: DuckDuckGoProxy, with_model: ModelServer) -> None:
    with_model.behave = reply_with("Xem [2] và https://www.vinmec.com/vi/bai-viet/sau-rang-nguyen-nhan-trieu-chung-vi")
    answer = ask(query=PF, top_k=2, routing=WEB)
    assert web.queries == [PF]
    document, page = answer["context"]
    assert (document["document_id"], "source" in document) == ("doc-pf-032", False)
    assert set(page) == {"document_id", "snippet", "score", "source"}
    assert page["source"] == "web"
    assert page["document_id"] == "https://www.vinmec.com/vi/bai-viet/sau-rang-nguyen-nhan-trieu-chung-vi"
    assert "Sâu răng là tình trạng tổn thương mô cứng" in page["snippet"]
    assert 0 <= page["score"] <= 1
    assert answer["response"].endswith(page["document_id"])
    assert dropped_sources(answer) == {}
    (prompt,) = with_model.asked
    fence = re.findall(r"the mark ([0-9a-f]{16})", prompt.system)[0]
    assert f"<source 2 {fence}>\nSâu răng: Nguyên nhân" in prompt.prompt


@pytest.mark.parametrize(("top_k", "pages"), [(1, 1), (3, 3), (20, 5)])
def test_web_alone_answers_when_no_document_matches(
    ask: Ask, web: DuckDuckGoProxy, settings: Callable[..., None], top_k: int, pages: int
) -> None:
    settings(KHO_MODEL_PROVIDER="none")
    answer = ask(query="sâu răng nguyên nhân", top_k=top_k, routing=WEB)
    assert [each["source"] for each in answer["context"]] == ["web"] * pages
    assert answer["context"][0]["score"] > 0.5
    assert "Sâu răng là tình trạng tổn thương mô cứng" in answer["response"]


@pytest.mark.parametrize("query", ["challenge", "500", "reset"])
def test_failed_web_search_is_reported(ask: Ask, web: DuckDuckGoProxy, query: str) -> None:
    answer = ask(query=query, routing=WEB)
    assert (answer["context"], dropped_sources(answer)) == ([], {"web_search": "unavailable"})


def test_no_result_from_documents_or_web(ask: Ask, web: DuckDuckGoProxy) -> None:
    answer = ask(query="nothing is found", routing=WEB)
    assert (answer["response"], answer["context"], dropped_sources(answer)) == ("", [], {})


@pytest.mark.parametrize("query", ["silent", "trickle"])
def test_slow_web_search_is_abandoned(ask: Ask, web: DuckDuckGoProxy, query: str) -> None:
    answer = ask(query=query, routing=WEB | {"max_latency_ms": 400})
    assert dropped_sources(answer)["web_search"] == "out_of_time"
