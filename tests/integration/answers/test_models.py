"""The model that words an answer, and what becomes of the answer without it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from shared import aside
from shared.knowledge.answering import budget, pipeline
from tests.helpers.wait import until
from tests.integration.answers.library import PF, Ask, documents, dropped
from tests.models import FAILING, SLOW, says

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.models import ModelServer


def test_a_model_that_fails_is_done_without(ask: Ask, answering: str, model: ModelServer) -> None:
    for name, model.behave in FAILING.items():
        answer = ask(query=PF)
        assert "Bước 1: Active PF envelope" in answer["response"], name
        assert dropped(answer)["answer_model"] in ("unavailable", "unusable"), name
        assert documents(answer) == ["doc-pf-032"], name
    assert len(model.asked) == len(FAILING)


def test_a_model_that_says_nothing_has_cost_what_it_cost(ask: Ask, with_model: ModelServer) -> None:
    with_model.behave = says("<think>hm</think>")
    answer = ask(query=PF)
    assert dropped(answer) == {"answer_model": "unusable"}
    assert (answer["usage"]["llm_tokens_prompt"], answer["usage"]["llm_tokens_completion"]) == (1300, 215)


def test_an_answer_that_was_cut_off_says_so(ask: Ask, with_model: ModelServer) -> None:
    message = {"choices": [{"message": {"content": "Chạy"}, "finish_reason": "length"}]}
    with_model.behave = lambda conversation: conversation.answer(json.dumps(message).encode())
    answer = ask(query=PF)
    assert (answer["response"], dropped(answer)) == ("Chạy", {"answer_model": "cut_off"})


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"KHO_MODEL": ""}, "misconfigured"),
        ({"KHO_MODEL_URL": "nonsense"}, "misconfigured"),
        ({"KHO_MODEL_KEY": "sk-sécret"}, "misconfigured"),
        ({"KHO_MODEL_URL": "http://127.0.0.1:1/v1"}, "unavailable"),
        ({"KHO_MODEL_PROVIDER": "none"}, "not_configured"),
    ],
)
def test_a_model_that_is_not_there(ask: Ask, settings: Callable[..., None], wrong: dict[str, str], reason: str) -> None:
    settings(**wrong)
    answer = ask(query=PF)
    assert "Bước 1: Active PF envelope" in answer["response"]
    assert dropped(answer) == {"answer_model": reason}
    assert "cret" not in json.dumps(answer)


@pytest.mark.parametrize("slow", SLOW)
def test_a_slow_model_is_dropped_before_the_budget_is_over(
    ask: Ask, answering: str, model: ModelServer, slow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that stands still, all of the budget but its reserve is left for the model."""
    waited: list[float] = []

    def within(seconds: float, work: Callable[[], Any]) -> Any:
        waited.append(seconds)
        return aside.within(seconds, work)

    monkeypatch.setattr(pipeline, "within", within)
    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: 0.0))
    monkeypatch.setattr(budget, "seconds_so_far", lambda: 0.0)
    model.behave = SLOW[slow]
    answer = ask(query=PF, routing={"max_latency_ms": 200})
    assert dropped(answer)["answer_model"] == "out_of_time"
    assert "Bước 1: Active PF envelope" in answer["response"]
    assert answer["usage"]["llm_tokens_prompt"] == 0
    for_searching, for_the_model = waited
    assert for_searching == budget._SEARCH_SECONDS
    assert for_the_model == pytest.approx(0.2 - 0.05)
    until(lambda: len(model.asked) == 1)


def test_a_model_has_no_longer_than_a_request_has(
    ask: Ask, with_model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "_LONGEST", 0.5)
    with_model.behave = SLOW["silence"]
    for routing in ({}, {"max_latency_ms": 600_000}):
        assert dropped(ask(query=PF, routing=routing))["answer_model"] == "out_of_time"


def test_no_model_is_asked_where_there_is_no_time_for_it(ask: Ask, with_model: ModelServer) -> None:
    """The reserve for the end is more than the whole of such a budget."""
    answer = ask(query=PF, routing={"max_latency_ms": 1})
    assert dropped(answer)["answer_model"] == "out_of_time"
    assert documents(answer) == ["doc-pf-032"]
    assert with_model.asked == []


def test_no_model_is_not_a_late_one(ask: Ask) -> None:
    assert dropped(ask(query=PF, routing={"max_latency_ms": 1}))["answer_model"] == "not_configured"
