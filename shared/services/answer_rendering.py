"""Markdown rendering of an answer from the documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.services.answer_response import KnowledgeAnswer


def render_answer(answer: KnowledgeAnswer) -> str:
    """Render the answer and its sources. Sources are quoted, so that none can pass for a part of the answer."""
    if not answer.context:
        return "No document is relevant to this question."
    parts = [answer.response]
    for number, each in enumerate(answer.context, start=1):
        where = " (web)" if each.source else ""
        parts.append(f"[{number}] {each.document_id}{where} · {each.score:.2f}\n{_quoted(each.snippet)}")
    parts += [each.message for each in answer.usage.degraded or []]
    return "\n\n".join(parts)


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))
