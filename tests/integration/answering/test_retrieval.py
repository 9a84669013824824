"""The search behind an answer, with and without the reranker."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from agent_data import query_knowledge
from shared.answering import pipeline
from shared.rpc.errors import OutOfTime, Unavailable
from shared.search.hybrid_search import HybridSearch
from shared.search.index import PassageIndex, knowledge_index
from tests.helpers.answer_library import PF, Ask, cited_documents, dropped_sources
from tests.helpers.document_agent import expect_error
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.helpers.model_server import ModelServer


class Reading:
    """A reranking model with scripted behaviour."""

    def __init__(self, read: Callable[[], object]) -> None:
        self._read = read

    def scores(self, _question: str, texts: Sequence[str]) -> list[float]:
        self._read()
        return [float("PF" in text) for text in texts]


@pytest.fixture
def reranked_by(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Return a function that puts a reranking model into the pipeline."""

    def put(read: Callable[[], object]) -> None:
        real = knowledge_index()
        retriever = HybridSearch(real._embedder, real._store, reranker=Reading(read))
        index = PassageIndex(real._embedder, real._store, retriever)
        monkeypatch.setattr(query_knowledge, "knowledge_index", lambda: index)

    return put


def refuse() -> None:
    raise Unavailable


def test_reranker_decides_relevance(ask: Ask, reranked_by: Any) -> None:
    reranked_by(lambda: None)
    assert cited_documents(ask(query="xyzzy")) == ["doc-pf-032"]


def test_slow_reranker_is_abandoned_within_the_budget(ask: Ask, reranked_by: Any, with_model: ModelServer) -> None:
    ending = threading.Event()
    reranked_by(lambda: ending.wait(CEILING_SECONDS))
    try:
        answer = ask(query=PF, routing={"max_latency_ms": 300})
    finally:
        ending.set()
    assert dropped_sources(answer) == {"reranker": "out_of_time", "answer_model": "out_of_time"}
    assert cited_documents(answer) == ["doc-pf-032"]
    assert with_model.asked == []


def test_unavailable_reranker_is_skipped(ask: Ask, reranked_by: Any, with_model: ModelServer) -> None:
    reranked_by(refuse)
    answer = ask(query=PF)
    assert dropped_sources(answer) == {"reranker": "unavailable"}
    assert (answer["response"], cited_documents(answer)) == ("Chạy **pf init** [1].", ["doc-pf-032"])


def test_unavailable_index_is_reported(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_knowledge, "knowledge_index", refuse)
    expect_error(Unavailable, "UNAVAILABLE", ask, query=PF)


def test_hanging_index_is_abandoned(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    ending = threading.Event()
    monkeypatch.setattr(query_knowledge, "knowledge_index", lambda: ending.wait(CEILING_SECONDS))
    monkeypatch.setattr(pipeline, "_SEARCH_SECONDS", 0.3)
    try:
        expect_error(OutOfTime, "OUT_OF_TIME", ask, query=PF, routing={"max_latency_ms": 200})
    finally:
        ending.set()
