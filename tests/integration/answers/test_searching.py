"""The search behind an answer, and what becomes of the answer without a closer look."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from agent_data import query_knowledge
from shared.knowledge.answering import budget
from shared.knowledge.index import Index, knowledge_index
from shared.knowledge.retrieval import Retriever
from shared.rpc.errors import OutOfTime, Unavailable
from tests.documents import refusal
from tests.helpers.wait import CEILING_SECONDS
from tests.integration.answers.library import PF, Ask, documents, dropped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.models import ModelServer


class Reading:
    """A reranking model that does as told."""

    def __init__(self, read: Callable[[], object]) -> None:
        self._read = read

    def scores(self, _question: str, texts: Sequence[str]) -> list[float]:
        self._read()
        return [float("PF" in text) for text in texts]


@pytest.fixture
def reranked_by(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Puts a reranking model into the pipeline."""

    def put(read: Callable[[], object]) -> None:
        real = knowledge_index()
        retriever = Retriever(real._embedder, real._store, reranker=Reading(read))
        index = Index(real._embedder, real._store, retriever)
        monkeypatch.setattr(query_knowledge, "knowledge_index", lambda: index)

    return put


def refuse() -> None:
    raise Unavailable


def test_a_reranking_model_decides_what_bears_on_a_question(ask: Ask, reranked_by: Any) -> None:
    reranked_by(lambda: None)
    assert documents(ask(query="xyzzy")) == ["doc-pf-032"]


def test_the_reranker_is_dropped_before_the_budget_is_over(ask: Ask, reranked_by: Any, with_model: ModelServer) -> None:
    ending = threading.Event()
    reranked_by(lambda: ending.wait(CEILING_SECONDS))
    try:
        answer = ask(query=PF, routing={"max_latency_ms": 300})
    finally:
        ending.set()
    assert dropped(answer) == {"reranker": "out_of_time", "answer_model": "out_of_time"}
    assert documents(answer) == ["doc-pf-032"]
    assert with_model.asked == []


def test_a_reranker_that_is_down_is_done_without(ask: Ask, reranked_by: Any, with_model: ModelServer) -> None:
    reranked_by(refuse)
    answer = ask(query=PF)
    assert dropped(answer) == {"reranker": "unavailable"}
    assert (answer["response"], documents(answer)) == ("Chạy **pf init** [1].", ["doc-pf-032"])


def test_an_index_that_is_down_is_said_to_be(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_knowledge, "knowledge_index", refuse)
    refusal(Unavailable, "UNAVAILABLE", ask, query=PF)


def test_an_index_that_hangs_is_not_waited_for(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    ending = threading.Event()
    monkeypatch.setattr(query_knowledge, "knowledge_index", lambda: ending.wait(CEILING_SECONDS))
    monkeypatch.setattr(budget, "_SEARCH_SECONDS", 0.3)
    try:
        refusal(OutOfTime, "OUT_OF_TIME", ask, query=PF, routing={"max_latency_ms": 200})
    finally:
        ending.set()
