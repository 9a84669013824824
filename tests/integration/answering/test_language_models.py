"""The model that words an answer, and the answer without a model."""

from __future__ import annotations

import json
from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from shared.answering import pipeline
from shared.aws import secrets_manager
from shared.language_model import language_model
from shared.platform import background
from shared.rpc.errors import Unavailable
from tests.helpers.answer_library import PF, Ask, cited_documents, dropped_sources
from tests.helpers.model_server import FAILING, SLOW, ModelRequestHandler, ModelServer, reply_with
from tests.helpers.wait import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.helpers.model_server import ModelServer


def test_failing_model_falls_back_to_extraction(ask: Ask, answering: str, model: ModelServer) -> None:
    for name, model.behave in FAILING.items():
        answer = ask(query=PF)
        assert "Bước 1: Active PF envelope" in answer["response"], name
        assert dropped_sources(answer)["answer_model"] in ("unavailable", "unusable"), name
        assert cited_documents(answer) == ["doc-pf-032"], name
    assert len(model.asked) == len(FAILING)


def test_empty_completion_still_reports_token_usage(ask: Ask, with_model: ModelServer) -> None:
    with_model.behave = reply_with("<think>hm</think>")
    answer = ask(query=PF)
    assert dropped_sources(answer) == {"answer_model": "unusable"}
    assert (answer["usage"]["llm_tokens_prompt"], answer["usage"]["llm_tokens_completion"]) == (1300, 215)


def test_truncated_completion_is_marked(ask: Ask, with_model: ModelServer) -> None:
    message = {"choices": [{"message": {"content": "Chạy"}, "finish_reason": "length"}]}
    with_model.behave = lambda conversation: conversation.answer(json.dumps(message).encode())
    answer = ask(query=PF)
    assert (answer["response"], dropped_sources(answer)) == ("Chạy", {"answer_model": "cut_off"})


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
def test_unreachable_model(ask: Ask, settings: Callable[..., None], wrong: dict[str, str], reason: str) -> None:
    settings(**wrong)
    answer = ask(query=PF)
    assert "Bước 1: Active PF envelope" in answer["response"]
    assert dropped_sources(answer) == {"answer_model": reason}
    assert "cret" not in json.dumps(answer)


@pytest.mark.parametrize("slow", SLOW)
def test_slow_model_is_abandoned_within_the_budget(
    ask: Ask, answering: str, model: ModelServer, slow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the clock stopped, the model gets the whole budget except its reserve."""
    waited: list[float] = []

    def within(seconds: float, work: Callable[[], Any]) -> Any:
        waited.append(seconds)
        return background.run_with_timeout(seconds, work)

    monkeypatch.setattr(pipeline, "run_with_timeout", within)
    monkeypatch.setattr(pipeline, "time", SimpleNamespace(monotonic=lambda: 0.0))
    monkeypatch.setattr(pipeline, "seconds_so_far", lambda: 0.0)
    model.behave = SLOW[slow]
    answer = ask(query=PF, routing={"max_latency_ms": 200})
    assert dropped_sources(answer)["answer_model"] == "out_of_time"
    assert "Bước 1: Active PF envelope" in answer["response"]
    assert answer["usage"]["llm_tokens_prompt"] == 0
    for_searching, for_the_model = waited
    assert for_searching == pipeline._SEARCH_SECONDS
    assert for_the_model == pytest.approx(0.2 - 0.05)
    until(lambda: len(model.asked) == 1)


def test_model_timeout_is_bounded_by_the_request_deadline(
    ask: Ask, with_model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "_MAX_SECONDS", 0.5)
    with_model.behave = SLOW["silence"]
    for routing in ({}, {"max_latency_ms": 600_000}):
        assert dropped_sources(ask(query=PF, routing=routing))["answer_model"] == "out_of_time"


def test_model_is_not_called_without_remaining_time(ask: Ask, with_model: ModelServer) -> None:
    """The reserve for the end exceeds the whole of such a budget."""
    answer = ask(query=PF, routing={"max_latency_ms": 1})
    assert dropped_sources(answer)["answer_model"] == "out_of_time"
    assert cited_documents(answer) == ["doc-pf-032"]
    assert with_model.asked == []


def test_missing_model_is_not_reported_as_timeout(ask: Ask) -> None:
    assert dropped_sources(ask(query=PF, routing={"max_latency_ms": 1}))["answer_model"] == "not_configured"


def test_a_refused_key_is_read_again(
    model: ModelServer, settings: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rotated secret takes effect with the call after the first one that the model's server refuses."""
    secrets = iter(["old", "new"])
    monkeypatch.setattr(secrets_manager, "_fetch", lambda _: next(secrets))
    monkeypatch.delenv("KHO_MODEL_KEY")
    secrets_manager.forget_secrets()
    settings(KHO_MODEL_KEY_SECRET="arn:aws:secretsmanager:kho")
    reply = model.behave

    def refuse_old(conversation: ModelRequestHandler) -> None:
        if conversation.headers["authorization"] == "Bearer old":
            conversation.answer(b"{}", status=401)
        else:
            reply(conversation)

    model.behave = refuse_old
    for outcome in (pytest.raises(Unavailable), nullcontext()):
        with outcome:
            configured = language_model()
            assert configured
            configured.complete("", "x", max_tokens=1)
    assert [each.headers["authorization"] for each in model.asked] == ["Bearer old", "Bearer new"]
    secrets_manager.forget_secrets()
