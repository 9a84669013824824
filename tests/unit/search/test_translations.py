"""Messages for people in English, Vietnamese and Chinese."""

from __future__ import annotations

from string import Formatter

import pytest

from agent_data.query_knowledge import KnowledgeAnswer, Usage, handler, render_answer
from shared.answering.models import AnswerRequest, DegradedStage
from shared.answering.pipeline import _language_of, _message
from shared.knowledge.refinement import refine
from shared.search.translations import LANGUAGES, TRANSLATIONS, translate


def variables(text: str) -> list[str]:
    return sorted(name for _, name, _, _ in Formatter().parse(text) if name)


@pytest.mark.parametrize("english", TRANSLATIONS)
def test_each_message_has_both_languages_and_the_same_variables(english: str) -> None:
    translations = TRANSLATIONS[english]
    assert set(translations) == set(LANGUAGES)
    assert all(variables(each) == variables(english) for each in translations.values())


@pytest.mark.parametrize(
    ("question", "hint", "language"),
    [
        ("Mỗi năm được nghỉ bao nhiêu ngày?", "", "vi"),
        ("每年有多少天假期？", "", "zh"),
        ("How many days of leave are there?", "", "en"),
        ("How many days of leave are there?", "vi-VN", "vi"),
    ],
)
def test_language_is_the_hints_else_the_questions(question: str, hint: str, language: str) -> None:
    request = AnswerRequest(question=question, tenant_id="t", collection="c", language=hint)
    assert _language_of(request) == language


def test_degraded_stage_says_it_in_the_language() -> None:
    missing = DegradedStage("answer_model", "not_configured", "No language model is configured.")
    assert _message(missing, "vi") == "Chưa cấu hình mô hình ngôn ngữ."
    assert _message(missing, "zh") == "未配置语言模型。"
    assert _message(missing, "fr") == missing.message
    refused = DegradedStage("web_search", "unavailable", "DuckDuckGo returned an empty page.")
    assert _message(refused, "en") == refused.message
    assert _message(refused, "vi") == "Tìm kiếm trên web không thành công."


def test_refinement_is_in_the_language_of_the_query() -> None:
    assert refine("Cây dương xỉ tưới thế nào?", []).message.startswith("Không có gì trong các bộ sưu tập")
    assert refine("怎么浇水？", []).message.startswith("这些知识库中没有匹配")
    assert refine("How are ferns watered?", []).message.startswith("Nothing in these collections")
    assert translate("Did you mean: {words}?", "vi", words="dương xỉ") == "Có phải ý bạn là: dương xỉ?"


@pytest.mark.parametrize(
    ("language", "text"), [("vi", "Không có tài liệu"), ("zh", "没有与此问题"), ("", "No document")]
)
def test_no_relevant_document_is_told_in_the_language(language: str, text: str) -> None:
    answer = KnowledgeAnswer("", [], Usage(0, 0, 0), language)
    assert render_answer(answer).startswith(text)
    assert "language" not in handler.method.as_object(answer), "the answer has exactly the contract's fields"
