"""An answer in the form that the caller prefers."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from shared.knowledge.answering.language_detection import quotation_notice
from shared.knowledge.answering.sanitization import cited_numbers, outside_code, without_marks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.knowledge.answering.extractive import Quotation
    from shared.knowledge.answering.models import AnswerSource, Format

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
_WHOLE: Final = re.compile(r"[ \t]*(`{3,}|~{3,})[^\n`]*\n(?:(?![ \t]*\1)[^\n]*\n)*[ \t]*\1[ \t]*")
_TABLE: Final = re.compile(r"(?:[ \t]*\|[^\n]*(?:\n|\Z))+")
_SPAN: Final = re.compile(r"`([^`\n]*)`")
_TICKS: Final = re.compile(r"`{3,}")


def render_answer(text: str, sources: Sequence[AnswerSource], form: Format) -> str:
    """A model's answer."""
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
    """An answer made of quotations, which says of itself that it is."""
    note = quotation_notice(language)
    if form == "markdown":
        return "\n\n".join([f"*{note}*", *_lists(quotations)])
    lines = "\n".join(f"{_bare(each)} [{each.number}]" for each in quotations)
    if form == "plain":
        return f"{note}\n\n{lines}"
    return _as_json(lines, list(dict.fromkeys(each.number for each in quotations)), sources, is_quoted=True, note=note)


def to_plain_text(text: str) -> str:
    """Markdown as plain text: its words, its lists, its addresses."""
    bare = outside_code(text, _unmarked)
    return _SPAN.sub(r"\1", _FENCE.sub("", bare)).strip()


def _unmarked(prose: str) -> str:
    for mark, left in _MARKUP:
        prose = mark.sub(left, prose)
    return prose


def _lists(quotations: Sequence[Quotation]) -> list[str]:
    """Sentences as the items of lists; what is a block stands between them as it is."""
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


def _bare(quotation: Quotation) -> str:
    """What is quoted, without markup; of a block, its own marks may mean something else."""
    return _FENCE.sub("", quotation.text).strip("\n") if quotation.is_block else to_plain_text(quotation.text)


def _block(text: str) -> str:
    if _WHOLE.fullmatch(text):
        return text
    if _TABLE.fullmatch(text):
        return outside_code(text, without_marks)
    fence = max(("```", *(f"{ticks}`" for ticks in _TICKS.findall(text))), key=len)
    return f"{fence}\n{text}\n{fence}"


def _as_json(
    text: str, numbers: Sequence[int], sources: Sequence[AnswerSource], *, is_quoted: bool, note: str = ""
) -> str:
    citations = [
        {"number": number, "document_id": sources[number - 1].id} for number in numbers if 1 <= number <= len(sources)
    ]
    said = {"answer": text, "citations": citations, "quoted": is_quoted} | ({"note": note} if note else {})
    return json.dumps(said, ensure_ascii=False)
