"""Sources, language and form of answers, and questions without an answer."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Final

import pytest

from shared.documents import immediate_indexing
from tests.helpers.answer_library import LAPTOP, PF, TRAVEL, Ask, cited_documents, dropped_sources, write_document
from tests.helpers.model_server import FAILING

if TYPE_CHECKING:
    from tests.helpers.document_agent import DocumentAgent
    from tests.helpers.model_server import ModelServer


UNRELATED: Final = (
    "Công thức nấu phở bò Hà Nội?",
    "cach nau pho bo",
    "What is the capital of Mongolia?",
    "如何烤面包？",
    "recipe for chocolate cake",
    "xyzzy qwerty",
    "?!",
)


def test_contract_question_gets_the_contract_answer(ask: Ask, answering: str, model: ModelServer) -> None:
    answer = ask(
        query=PF,
        filters={"tags": ["pf", "phase-11"]},
        top_k=8,
        context_hints={"preferred_format": "markdown", "language": "vi-VN"},
        routing={"allow_external_search": False, "max_latency_ms": 600_000},
    )
    assert set(answer) == {"response", "context", "usage"}
    assert answer["response"] == "Chạy **pf init** [1]."
    first, *_ = answer["context"]
    assert set(first) == {"document_id", "snippet", "score"}
    assert first["document_id"] == "doc-pf-032"
    assert "Bước 1: Active PF envelope" in first["snippet"]
    scores = [each["score"] for each in answer["context"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    assert answer["usage"] == {"qdrant_hits": 2, "llm_tokens_prompt": 1300, "llm_tokens_completion": 215}
    (prompt,) = model.asked
    assert PF in prompt.prompt
    assert "Bước 1: Active PF envelope" in prompt.prompt
    assert "Vietnamese" in prompt.system


@pytest.mark.parametrize(
    ("question", "document", "said", "note"),
    [
        (PF, "doc-pf-032", "Bước 1: Active PF envelope bằng `pf init`. [1]", "Trích nguyên văn"),
        ("cac buoc khoi tao ha tang pf", "doc-pf-032", "Bước 2: Tạo VPC và khoá KMS. [1]", "Trích nguyên văn"),
        (LAPTOP, "doc-laptop", "gets a laptop on the first day", "Quoted from the documents"),
        (TRAVEL, "doc-travel", "差旅费用须在回来后三十天内提交，并附上发票。 [1]", "原文摘录"),
        ("How do I get travel costs back?", "doc-travel", "差旅费用", "Quoted from the documents"),
    ],
)
def test_extractive_answer_is_in_the_callers_language(
    ask: Ask, question: str, document: str, said: str, note: str
) -> None:
    answer = ask(query=question)
    assert cited_documents(answer)[0] == document
    assert said in answer["response"]
    assert note in answer["response"]
    assert dropped_sources(answer) == {"answer_model": "not_configured"}
    assert (answer["usage"]["llm_tokens_prompt"], answer["usage"]["llm_tokens_completion"]) == (0, 0)


def test_language_hint_sets_the_answer_language(ask: Ask, with_model: ModelServer) -> None:
    ask(query=LAPTOP, context_hints={"language": "zh-CN"})
    assert "Chinese" in with_model.asked[0].system
    with_model.behave = FAILING["an error"]
    assert "原文摘录" in ask(query=LAPTOP, context_hints={"language": "zh_Hans"})["response"]


@pytest.mark.parametrize("question", UNRELATED)
def test_unrelated_question_is_not_answered(ask: Ask, with_model: ModelServer, question: str) -> None:
    answer = ask(query=question, top_k=20)
    assert (answer["response"], answer["context"]) == ("", [])
    assert dropped_sources(answer) == {}
    assert answer["usage"]["llm_tokens_prompt"] == 0
    assert with_model.asked == []


def test_tenant_without_documents_gets_no_answer(agent: DocumentAgent, with_model: ModelServer) -> None:
    usage = {"qdrant_hits": 0, "llm_tokens_prompt": 0, "llm_tokens_completion": 0}
    assert agent("query_knowledge", query=PF) == {"response": "", "context": [], "usage": usage}
    assert with_model.asked == []


def test_all_tags_must_match(ask: Ask) -> None:
    assert cited_documents(ask(query=LAPTOP, filters={"tags": ["pf"]})) == ["doc-laptop"]
    assert cited_documents(ask(query=LAPTOP, filters={"tags": ["onboarding", "pf", "pf"]})) == ["doc-laptop"]
    assert ask(query=LAPTOP, filters={"tags": ["pf", "phase-11"]})["context"] == []
    assert ask(query=LAPTOP, filters={"tags": ["unused"]})["context"] == []


def test_metadata_must_match(agent: DocumentAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values are exact, and one of a list is enough. What the index still has of before does not count."""
    for name, metadata in {"a": {"status": "draft", "n": 1}, "b": {"status": ["done", "sent"], "n": 1}}.items():
        agent.create(name, body=f"Fern {name} is watered at dawn.", metadata=metadata)

    def found(**metadata: object) -> list[str]:
        filters = {"metadata": metadata}
        return sorted(cited_documents(agent("query_knowledge", query="When is a fern watered?", filters=filters)))

    assert found(n=1) == found(status=["draft", "done"]) == ["a", "b"]
    assert (found(n=1.0, status="sent"), found(n="1"), found(status="dra"), found(other=1)) == (["b"], [], [], [])
    monkeypatch.setattr(immediate_indexing, "refresh_document", lambda *_, **__: None)
    agent("edit_document", document_id="a", edits=[{"metadata": {"status": "done"}}])
    assert found(status="draft") == []


def test_top_k_limits_the_context(agent: DocumentAgent) -> None:
    for number in range(25):
        write_document(agent, f"fern-{number}", f"Fern number {number} is watered at dawn.")
    ask = partial(agent, "query_knowledge", query="When are ferns watered?")
    assert [len(ask(top_k=top_k)["context"]) for top_k in (1, 7, 20)] == [1, 7, 20]
    assert len(ask()["context"]) == 5
    assert ask(top_k=20)["usage"]["qdrant_hits"] == 25


@pytest.mark.parametrize("named", ["plain", "text", "plain_text", "text/plain"])
def test_plain_text_has_no_markup(ask: Ask, with_model: ModelServer, named: str) -> None:
    assert ask(query=PF, context_hints={"preferred_format": named})["response"] == "Chạy pf init [1]."
    with_model.behave = FAILING["an error"]
    quoted = ask(query=PF, context_hints={"preferred_format": named})["response"]
    assert "Bước 1: Active PF envelope bằng pf init. [1]" in quoted
    assert not re.search(r"[*`#]", quoted)


@pytest.mark.parametrize("named", ["json", "application/json"])
def test_json_answer_is_valid_json(ask: Ask, with_model: ModelServer, named: str) -> None:
    said = json.loads(ask(query=PF, context_hints={"preferred_format": named})["response"])
    citations = [{"number": 1, "document_id": "doc-pf-032"}]
    assert said == {"answer": "Chạy pf init [1].", "citations": citations, "quoted": False}
    with_model.behave = FAILING["an error"]
    said = json.loads(ask(query=PF, context_hints={"preferred_format": named})["response"])
    assert (said["quoted"], said["citations"]) == (True, citations)


def test_the_longest_question_is_answered(ask: Ask) -> None:
    assert cited_documents(ask(query=f"{PF} {'hạ tầng PF ' * 200}"[:2048]))[0] == "doc-pf-032"
