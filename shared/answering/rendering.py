"""Rendering of answers in the requested format."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from shared.answering.sanitization import cited_numbers, outside_code, remove_marks
from shared.search.language_detection import quotation_notice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.answering.extractive import Quotation
    from shared.answering.models import AnswerSource, Format

_MARKUP: Final = (
    (re.compile(r"^[ \t]{0,3}#{1,6}[ \t]+", re.MULTILINE), ""),
    (re.compile(r"^[ \t]*>[ \t]?", re.MULTILINE), ""),
    (re.compile(r"^([ \t]*)[*+][ \t]+", re.MULTILINE), r"\1- "),
    (re.compile(r"(\*\*|__)(?=\S)([^\n]{0,500}?\S)\1"), r"\2"),
    (re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]{0,500})\*(?![\w*])"), r"\1"),
    (re.compile(r"(?<![\w_])_(?=[^\s_])([^_\n]{0,500})_(?![\w_])"), r"\1"),
    (re.compile(r"\[([^\]\n]{1,300})\]\(<?([^\s()<>]{1,500})>?[^()\n]{0,200}\)"), r"\1 (\2)"),
)
_FENCE: Final = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*\n?", re.MULTILINE)
_COMPLETE_FENCE: Final = re.compile(r"[ \t]*(`{3,}|~{3,})[^\n`]*\n(?:(?![ \t]*\1)[^\n]*\n)*[ \t]*\1[ \t]*")
_TABLE: Final = re.compile(r"(?:[ \t]*\|[^\n]*(?:\n|\Z))+")
_SPAN: Final = re.compile(r"`([^`\n]*)`")
_TICKS: Final = re.compile(r"`{3,}")


def render_answer(text: str, sources: Sequence[AnswerSource], form: Format) -> str:
    """Render a model's answer."""
    if form == "markdown":
        return text
    return (
        to_plain_text(text)
        if form == "plain"
        else _as_json(to_plain_text(text), cited_numbers(text), sources, is_quoted=False)
    )


def render_quotations(
    quotations: Sequence[Quotation], sources: Sequence[AnswerSource], language: str, form: Format
) -> str:
    """Render an answer made of quotations, with a notice that it is."""
    note = quotation_notice(language)
    if form == "markdown":
        return "\n\n".join([f"*{note}*", *_lists(quotations)])
    lines = "\n".join(f"{_plain_quotation(each)} [{each.number}]" for each in quotations)
    if form == "plain":
        return f"{note}\n\n{lines}"
    return _as_json(lines, list(dict.fromkeys(each.number for each in quotations)), sources, is_quoted=True, note=note)


def to_plain_text(text: str) -> str:
    """Convert Markdown to plain text: its words, lists and addresses."""
    prose = outside_code(text, _remove_markup)
    return _SPAN.sub(r"\1", _FENCE.sub("", prose)).strip()


def _remove_markup(prose: str) -> str:
    for mark, replacement in _MARKUP:
        prose = mark.sub(replacement, prose)
    return prose


def _lists(quotations: Sequence[Quotation]) -> list[str]:
    """Render sentences as list items. Blocks stay unchanged between the lists."""
    parts: list[str] = []
    items: list[str] = []
    for each in quotations:
        if not each.is_block:
            items.append(f"- {each.text} [{each.number}]")
            continue
        parts += ["\n".join(items)] if items else []
        parts += [_block(each.text), f"[{each.number}]"]
        items = []
    return parts + (["\n".join(items)] if items else [])


def _plain_quotation(quotation: Quotation) -> str:
    """Return the quotation without markup. A block's own marks are kept: they may mean something else."""
    return _FENCE.sub("", quotation.text).strip("\n") if quotation.is_block else to_plain_text(quotation.text)


def _block(text: str) -> str:
    if _COMPLETE_FENCE.fullmatch(text):
        return text
    if _TABLE.fullmatch(text):
        return outside_code(text, remove_marks)
    fence = max(("```", *(f"{ticks}`" for ticks in _TICKS.findall(text))), key=len)
    return f"{fence}\n{text}\n{fence}"


def _as_json(
    text: str, numbers: Sequence[int], sources: Sequence[AnswerSource], *, is_quoted: bool, note: str = ""
) -> str:
    citations = [
        {"number": number, "document_id": sources[number - 1].id} for number in numbers if 1 <= number <= len(sources)
    ]
    answer = {"answer": text, "citations": citations, "quoted": is_quoted} | ({"note": note} if note else {})
    return json.dumps(answer, ensure_ascii=False)
