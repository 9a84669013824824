"""Answers from the web, as it was recorded, where the caller allows it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

from tests.duckduckgo import DuckDuckGoProxy, duckduckgo
from tests.integration.answers.library import PF, Ask, dropped
from tests.models import says

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.models import ModelServer


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDuckGoProxy]:
    """DuckDuckGo on loopback."""
    with duckduckgo(tmp_path_factory.mktemp("duckduckgo")) as running:
        yield running


@pytest.fixture
def web(proxy: DuckDuckGoProxy, with_model: ModelServer, settings: Callable[..., None]) -> DuckDuckGoProxy:
    """The web as it was recorded, behind the settings."""
    settings(KHO_SEARCH_PROXY=proxy.address, KHO_SEARCH_CA=str(proxy.authority))
    proxy.queries.clear()
    return proxy


WEB: Final = {"allow_external_search": True}


def test_the_web_is_asked_where_it_is_allowed_alone(ask: Ask, web: DuckDuckGoProxy) -> None:
    for routing in ({}, {"allow_external_search": False}):
        assert all("source" not in each for each in ask(query=PF, routing=routing)["context"])
    assert web.queries == []


def test_pages_stand_beside_documents_marked_as_such(ask: Ask, web: DuckDuckGoProxy, with_model: ModelServer) -> None:
    with_model.behave = says("Xem [2] và https://www.vinmec.com/vi/bai-viet/sau-rang-nguyen-nhan-trieu-chung-vi")
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
    assert dropped(answer) == {}
    (asked,) = with_model.asked
    fence = re.findall(r"the mark ([0-9a-f]{16})", asked.system)[0]
    assert f"<source 2 {fence}>\nSâu răng: Nguyên nhân" in asked.prompt


@pytest.mark.parametrize(("top_k", "pages"), [(1, 1), (3, 3), (20, 5)])
def test_the_web_answers_alone_where_no_document_does(
    ask: Ask, web: DuckDuckGoProxy, settings: Callable[..., None], top_k: int, pages: int
) -> None:
    settings(KHO_MODEL_PROVIDER="none")
    answer = ask(query="sâu răng nguyên nhân", top_k=top_k, routing=WEB)
    assert [each["source"] for each in answer["context"]] == ["web"] * pages
    assert answer["context"][0]["score"] > 0.5
    assert "Sâu răng là tình trạng tổn thương mô cứng" in answer["response"]


@pytest.mark.parametrize("query", ["challenge", "500", "reset"])
def test_a_web_search_that_fails_is_said_to_have(ask: Ask, web: DuckDuckGoProxy, query: str) -> None:
    answer = ask(query=query, routing=WEB)
    assert (answer["context"], dropped(answer)) == ([], {"web_search": "unavailable"})


def test_nothing_on_the_web_either(ask: Ask, web: DuckDuckGoProxy) -> None:
    answer = ask(query="nothing is found", routing=WEB)
    assert (answer["response"], answer["context"], dropped(answer)) == ("", [], {})


@pytest.mark.parametrize("query", ["silent", "trickle"])
def test_a_slow_web_search_is_not_waited_for(ask: Ask, web: DuckDuckGoProxy, query: str) -> None:
    answer = ask(query=query, routing=WEB | {"max_latency_ms": 400})
    assert dropped(answer) == {"web_search": "out_of_time"}
